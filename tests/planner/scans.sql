-- Queries whose tables may or may not be read in part; each is compared with plaintext DuckDB.
SELECT sum(v) FROM fact, dim WHERE fact.d = dim.d AND y = 2001;
SELECT y, count(note) FROM fact JOIN dim USING (d) JOIN shop USING (s) WHERE city = 'c1' GROUP
  BY y;
SELECT count(note) FROM fact NATURAL JOIN dim WHERE d = 2 AND y > 2000;
SELECT d, v FROM fact FULL JOIN dim USING (d) WHERE d = 2;
SELECT v, y FROM fact LEFT JOIN dim ON fact.d = dim.d AND y = 2001 WHERE k < 20;
SELECT v, y FROM fact LEFT JOIN dim ON fact.d = dim.d WHERE y = 2001;
SELECT v, y FROM fact LEFT JOIN dim ON fact.d = dim.d WHERE y IS NULL AND k > 10;
SELECT v, y FROM fact LEFT JOIN dim ON fact.d = dim.d AND k < 10;
SELECT v, y FROM fact RIGHT JOIN dim ON fact.d = dim.d AND k < 10 WHERE y = 2002;
SELECT v, y FROM fact RIGHT JOIN dim ON fact.d = dim.d WHERE k < 10;
SELECT v, y FROM fact FULL JOIN dim ON fact.d = dim.d AND k < 10 AND y = 2001;
SELECT v, y FROM fact FULL JOIN dim ON fact.d = dim.d WHERE k < 10;
SELECT v, city FROM fact JOIN dim ON fact.d = dim.d RIGHT JOIN shop ON fact.s = shop.s WHERE y =
  1;
SELECT v, city FROM dim, fact RIGHT JOIN shop ON fact.s = shop.s WHERE y = 2001 AND dim.d =
  fact.d;
SELECT v, y, city FROM fact LEFT JOIN dim ON fact.d = dim.d LEFT JOIN shop ON dim.d = shop.d
  WHERE k < 9;
SELECT v, y, city FROM fact LEFT JOIN dim ON fact.d = dim.d JOIN shop ON dim.d = shop.d WHERE k
  < 9;
SELECT v, y, city FROM fact LEFT JOIN dim ON fact.d = dim.d JOIN shop ON dim.d IS NOT DISTINCT
  FROM shop.d WHERE city = 'c1';
SELECT v FROM fact SEMI JOIN dim ON fact.d = dim.d AND y = 2001 WHERE k < 30;
SELECT v FROM fact ANTI JOIN dim ON fact.d = dim.d AND y = 2001 WHERE k < 30;
SELECT v, name FROM fact ASOF JOIN dim ON fact.k >= dim.d WHERE y = 2001;
SELECT v, name FROM fact POSITIONAL JOIN dim WHERE k = 3;
SELECT count(v) FROM (fact JOIN dim ON fact.d = dim.d) LEFT JOIN shop ON fact.s = shop.s WHERE k
  < 9;
SELECT v FROM fact WHERE d IN (SELECT d FROM dim WHERE y = 2001);
SELECT v FROM fact WHERE d NOT IN (SELECT d FROM dim WHERE y = 2001);
SELECT v FROM fact WHERE d NOT IN (SELECT d FROM dim WHERE y = 2001 AND d IS NOT NULL);
SELECT v FROM fact WHERE d IN (SELECT d FROM dim WHERE y = 2001) OR k = 3;
SELECT v FROM fact WHERE (d IN (SELECT d FROM dim WHERE y = 2001)) IS NULL;
SELECT v FROM fact WHERE d IN (SELECT max(d) FROM dim WHERE y = 2001);
SELECT v FROM fact WHERE d IN (SELECT d FROM dim WHERE y > 2000 ORDER BY d DESC NULLS LAST LIMIT
  1);
SELECT v FROM fact WHERE d IN (SELECT d FROM dim GROUP BY d HAVING count(*) > 0 AND d > 2);
SELECT v FROM fact WHERE d IN (SELECT dim.d FROM dim WHERE dim.y = fact.k + 2000);
SELECT v FROM fact WHERE k < 20 AND d IN (SELECT dim.d FROM dim, shop WHERE dim.d = shop.d AND
  city = 'c0');
SELECT v FROM fact WHERE EXISTS (SELECT * FROM dim WHERE dim.d = fact.d AND y = 2001);
SELECT v FROM fact WHERE NOT EXISTS (SELECT * FROM dim WHERE dim.d = fact.d AND y = 2001);
SELECT v FROM fact WHERE EXISTS (SELECT count(*) FROM dim WHERE dim.d = fact.d AND y = 2001);
SELECT v FROM fact WHERE EXISTS (SELECT 1 FROM dim WHERE dim.d = fact.d AND fact.k = 3);
SELECT v FROM fact WHERE EXISTS (SELECT 1 FROM dim WHERE d = fact.d AND s = 1);
SELECT v FROM fact WHERE EXISTS (SELECT 1 FROM dim LEFT JOIN shop ON shop.d = dim.d AND shop.s =
  fact.s WHERE y = 2001);
SELECT v FROM fact WHERE EXISTS (SELECT 1 FROM dim WHERE dim.d = fact.d HAVING count(*) = 0);
SELECT v FROM fact WHERE EXISTS (SELECT 1 FROM dim WHERE dim.d = fact.d GROUP BY ());
SELECT v FROM fact WHERE EXISTS (SELECT 1 FROM dim WHERE dim.d = fact.d LIMIT 0);
SELECT v FROM fact WHERE EXISTS (SELECT 1 FROM dim WHERE dim.d = fact.d UNION SELECT 1 FROM shop
  WHERE shop.s = 1);
SELECT v FROM fact WHERE k < 30 AND (SELECT count(*) FROM dim WHERE dim.d = fact.d) = 0;
SELECT v, (SELECT count(*) FROM dim WHERE dim.d = fact.d AND y > 2000) FROM fact WHERE k < 12;
SELECT v, (SELECT max(name) FROM dim WHERE dim.d = fact.d) FROM fact WHERE k < 12 ORDER BY k;
SELECT v FROM fact a WHERE v > (SELECT avg(v) FROM fact b WHERE b.d = a.d) AND a.s = 3;
SELECT a.v FROM fact a, fact b WHERE a.d = b.s AND a.k < 5 AND b.k > 50;
SELECT a.v FROM fact a, fact b WHERE a.k = b.k AND a.k = 5 AND b.k = 5;
SELECT a.v FROM fact a LEFT JOIN fact b ON a.k = b.k AND b.k = 5 WHERE a.k < 9;
WITH dim AS (SELECT d, k AS y FROM fact WHERE k < 5) SELECT * FROM dim WHERE y = 2;
WITH x AS (SELECT * FROM dim WHERE y = 2001) SELECT v FROM fact, x WHERE fact.d = x.d AND k > 3;
WITH x AS (SELECT d FROM dim WHERE y = 2001), z AS (SELECT d FROM dim WHERE y = 2002) SELECT *
  FROM x UNION ALL SELECT * FROM z;
WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT k FROM r, fact WHERE fact.k = r.n + 1 AND k
  < 6) SELECT * FROM r;
WITH x AS (SELECT v, d FROM fact WHERE k < 20), z AS (SELECT * FROM x WHERE d = 2) SELECT * FROM
  x, z;
SELECT v FROM fact WHERE k = 1 UNION SELECT v FROM fact WHERE k = 2 EXCEPT SELECT v FROM fact
  WHERE k = 3;
SELECT v FROM fact WHERE k < 5 INTERSECT SELECT v FROM fact WHERE k > 2;
SELECT v AS k FROM fact WHERE k < 5;
SELECT d + 100 AS y, v FROM fact WHERE EXISTS (SELECT 1 AS k FROM dim WHERE k = 5);
SELECT q.v FROM (SELECT v, d AS e FROM fact WHERE k < 9) q, dim WHERE e = dim.d AND y = 2001;
SELECT q.v FROM (SELECT v, d FROM fact) q JOIN dim USING (d) WHERE d = 2;
SELECT q.v FROM (SELECT v, d FROM fact) q LEFT JOIN dim USING (d) WHERE d = 2;
SELECT x.v FROM fact AS x(k, e, f, v) WHERE e = 2;
SELECT v, l.n FROM fact, LATERAL (SELECT dim.name AS n FROM dim WHERE dim.d = fact.d) l WHERE k
  < 9;
SELECT v FROM fact, LATERAL (SELECT 2 AS w) l WHERE fact.d = w;
SELECT k, v FROM fact WHERE d = 2 QUALIFY row_number() OVER (PARTITION BY s ORDER BY k) = 1;
SELECT count(*) FROM (SELECT v FROM fact WHERE d = 2 USING SAMPLE 100 PERCENT (bernoulli));
SELECT count(v) >= 0 FROM fact TABLESAMPLE 10 ROWS WHERE d = 2;
SELECT fact FROM fact WHERE d = 2;
SELECT count(*) FROM fact WHERE note = 'n1' AND (d = 1 OR (d = 2 AND note = 'n2'));
SELECT count(note) FROM fact, dim, shop WHERE fact.d = dim.d AND fact.s = shop.s AND ((y = 2001
  AND city = 'c1') OR (y = 2002 AND city = 'c2'));
SELECT count(note) FROM fact, dim WHERE (fact.d = dim.d AND y = 2001 AND k < 9) OR (fact.d =
  dim.d AND y = 2002 AND k > 50);
SELECT count(note) FROM fact, dim WHERE (fact.d = dim.d AND y = 2001) OR (fact.s = dim.d AND y =
  2002);
SELECT count(note) FROM fact WHERE NOT (d = 2 OR s = 1);
SELECT count(note) FROM fact WHERE NOT (d = 2 AND note = 'n1');
SELECT count(note) FROM fact WHERE day BETWEEN DATE '2020-01-05' AND DATE '2020-01-20' AND d IS
  NOT NULL;
SELECT * FROM (PIVOT fact ON d IN (1, 2) USING count(v) GROUP BY s);
SELECT city, count(v) FROM fact, shop WHERE fact.s = shop.s AND city = 'c1' GROUP BY ROLLUP
  (city);
FROM fact SELECT v WHERE d = 2;
SELECT v FROM fact WHERE d = (SELECT max(d) FROM dim WHERE y = 2001);
SELECT v FROM fact WHERE d = ANY (SELECT d FROM dim WHERE y = 2001);
SELECT v FROM main.fact WHERE main.fact.d = 2 AND k < 30;
SELECT v FROM "FACT" f WHERE "F".d = 2 AND f."K" < 30;
SELECT v FROM fact WHERE k < 100 - 90 AND d + 1 = 3;
SELECT v FROM fact f WHERE k < 20 AND EXISTS (SELECT 1 FROM dim d1 WHERE d1.d = f.d AND EXISTS
  (SELECT 1 FROM shop WHERE shop.d = d1.d AND shop.s = f.s AND city = 'c1'));
SELECT v FROM fact f WHERE f.k < 20 AND NOT EXISTS (SELECT 1 FROM dim d1 WHERE d1.d = f.d AND
  NOT EXISTS (SELECT 1 FROM shop WHERE shop.d = d1.d AND shop.s = f.s));
SELECT count(*) FROM fact WHERE d IN (SELECT d FROM shop WHERE s IN (SELECT s FROM shop WHERE
  city = 'c0'));
SELECT tag, max(note) FROM dim LEFT JOIN fact ON fact.d = dim.d WHERE tag = 't0' GROUP BY tag
  HAVING count(v) > 1;
SELECT v FROM fact CROSS JOIN dim WHERE fact.d = dim.d AND dim.y = 2001 AND fact.k IN (1, 2, 3,
  30);
SELECT (SELECT v FROM fact WHERE k = dim.d AND s = 1) FROM dim WHERE y = 2001;
SELECT v FROM fact WHERE k = 3 AND note = '⟪0⟫';
SELECT rowid, v FROM fact WHERE d = 2;
SELECT count(*) AS n FROM dim AS a0 LEFT JOIN dim AS a1 ON a0.d = a1.d WHERE a1.y IS NULL
  GROUP BY a0.d;
WITH dim AS (SELECT count(*) AS n FROM dim AS a0 WHERE a0.d > (SELECT min(k) FROM fact)
  GROUP BY a0.d) SELECT dim.n FROM dim, shop z WHERE z.s = dim.n;
