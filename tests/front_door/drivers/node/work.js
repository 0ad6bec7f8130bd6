// What an application does with node-postgres; it prints what it sees. Arguments: the port, the
// database, the user, and what follows the type of a column (ENC, or nothing).
"use strict";
const { Client, Pool, types } = require("pg");
const Cursor = require("pg-cursor");
const { from: copyFrom, to: copyTo } = require("pg-copy-streams");
const { pipeline } = require("node:stream/promises");
const { Readable } = require("node:stream");

const [port, database, user, enc = ""] = process.argv.slice(2);
const options = { host: "127.0.0.1", port: Number(port), database, user };
types.setTypeParser(1082, (value) => value); // dates stay as they are written

async function part(name, work, more = {}) {
  console.log("-- " + name);
  const con = new Client({ ...options, ...more });
  await con.connect();
  try {
    await con.query("SET timezone = 'UTC'");
    await con.query("DELETE FROM work");
    await work(con);
  } catch (error) {
    console.log("failed: " + said(error));
  } finally {
    await con.end();
  }
}

function said(error) {
  return error.code === undefined ? String(error.stack) : `${error.code} ${error.message}`;
}

async function fails(what, work) {
  try {
    await work();
    console.log(`${what}: no error`);
  } catch (error) {
    console.log(`${what}: ${error.code} ${error.constraint} ${error.column} ${error.position}`);
  }
}

function shown(result) {
  for (const row of result.rows) {
    console.log(JSON.stringify(row));
  }
}

const INSERT = "INSERT INTO work VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)";

function values(id) {
  return [
    id, `${id}.25`, new Date(Date.UTC(2024, 1, 29, 12, 30, 15, 123)), "2024-02-29",
    "00000000-0000-0000-0000-00000000000b", Buffer.from([0, 1, 255, 39, 92]), [1, null, 3],
    ["a b", 'q"x', null, ""], 0.5 + id, { k: [1, "z"] }, `naïve 'quoted' \\ ${id}`, id % 2 === 0, id,
  ];
}

async function typed(con) {
  for (let id = 1; id <= 3; id++) {
    console.log((await con.query(INSERT, values(id))).rowCount);
  }
  console.log((await con.query("INSERT INTO work (id, s) VALUES ($1, $2)", [9, "only"])).rowCount);
  for (const id of [1, 2, 3, 9, 10]) {
    const result = await con.query("SELECT * FROM work WHERE id = $1", [id]);
    shown(result);
    if (id === 1) {
      console.log(result.fields.map((f) => `${f.name} ${f.dataTypeID} ${f.dataTypeModifier}`).join());
    }
  }
  shown(await con.query("SELECT count(*), sum(n), min(d), max(t) FROM work WHERE yes = $1", [true]));
  shown(await con.query("SELECT id FROM work WHERE id = ANY ($1) ORDER BY id", [[1, 3, 77]]));
  shown(await con.query("SELECT s FROM work WHERE j @> $1 ORDER BY id", [{ k: ["z"] }]));
}

// The driver reads neither NULL in binary arrays nor bytea.
async function binary(con) {
  await con.query(INSERT, values(1));
  for (const key of [1, 2]) {
    shown(await con.query("SELECT id, n, t, u, f, s, yes, open FROM work WHERE id = $1", [key]));
  }
}

async function named(con) {
  for (let round = 0; round < 8; round++) {
    const id = 100 + round;
    await con.query({ name: "put", text: "INSERT INTO work (id, s) VALUES ($1, $2)",
                      values: [id, `round ${round}`] });
    await con.query({ name: "up", text: "UPDATE work SET s = s || '!' WHERE id = $1", values: [id] });
    shown(await con.query({ name: "get", text: "SELECT id, s FROM work WHERE id = $1",
                            values: [id] }));
    const gone = await con.query({ name: "off", text: "DELETE FROM work WHERE id = $1",
                                   values: [id - 2] });
    console.log(gone.command, gone.rowCount);
  }
}

async function transactions(con) {
  await con.query("BEGIN");
  await con.query("INSERT INTO work (id, s) VALUES (1, 'first')");
  await con.query("SAVEPOINT here");
  await fails("within", () => con.query("INSERT INTO work (id, s) VALUES (1, 'twice')"));
  await fails("after", () => con.query("SELECT 1"));
  await con.query("ROLLBACK TO here");
  await con.query("COMMIT");
  await con.query("BEGIN ISOLATION LEVEL SERIALIZABLE");
  await con.query("UPDATE work SET s = 'gone'");
  await con.query("ROLLBACK");
  shown(await con.query("SELECT id, s FROM work"));
}

async function errors(con) {
  await con.query("INSERT INTO work (id, s) VALUES (1, 'a')");
  for (const sql of [
    "INSERT INTO work (id, s) VALUES (1, 'b')", "INSERT INTO work (id) VALUES (2)",
    "SELECT nope FROM work", "SELEC 1", "SELECT * FROM nowhere", "SELECT 1 / 0",
  ]) {
    await fails(sql, () => con.query(sql));
  }
  await fails("parameters", () => con.query("SELECT $1::int / $2::int", [1, 0]));
  await fails("a value", () => con.query("SELECT s FROM work WHERE id = $1", ["x"]));
  shown(await con.query("SELECT $1::int / $2::int AS half", [4, 2]));
}

async function queued(con) {
  // Queries that are not awaited one by one: the driver sends each when the one before has ended.
  const all = [];
  for (let id = 0; id < 20; id++) {
    all.push(con.query("INSERT INTO work (id, s) VALUES ($1, $2)", [id % 18, `row ${id}`]));
  }
  const done = await Promise.allSettled(all);
  console.log(done.map((d) => (d.status === "fulfilled" ? "1" : d.reason.code)).join());
  shown(await con.query("SELECT count(*), max(s) FROM work"));
  const several = await con.query("SELECT 1 AS a; UPDATE work SET s = 'u' WHERE id = 3; SELECT 'x' AS b");
  console.log(several.map((r) => `${r.command} ${r.rowCount}`).join());
}

async function cursors(con) {
  await con.query("INSERT INTO work (id, s) SELECT i, 'row ' || i FROM generate_series(1, 12) i");
  const cursor = con.query(new Cursor("SELECT id, s FROM work WHERE id > $1 ORDER BY id", [2]));
  for (;;) {
    const rows = await cursor.read(4);
    console.log(JSON.stringify(rows));
    if (!rows.length) break;
  }
  await cursor.close();
  await con.query("BEGIN");
  await con.query("DECLARE c CURSOR FOR SELECT id FROM work ORDER BY id DESC");
  shown(await con.query("FETCH 2 FROM c"));
  shown(await con.query("FETCH 2 FROM c"));
  await con.query("COMMIT");
}

async function copied(con) {
  await pipeline(Readable.from(["1\tone\t1.50\n2\tt", "wo\t\\N\n"]),
                 con.query(copyFrom("COPY work (id, s, n) FROM STDIN")));
  const out = [];
  const stream = con.query(copyTo("COPY (SELECT id, s, n FROM work ORDER BY id) TO STDOUT (FORMAT csv)"));
  for await (const chunk of stream) out.push(chunk);
  console.log(Buffer.concat(out).toString());
  await fails("twice", () => pipeline(Readable.from(["5\tfive\n1\ttwice\n"]),
                                      con.query(copyFrom("COPY work (id, s) FROM STDIN"))));
  shown(await con.query("SELECT count(*) FROM work"));
}

async function heard(con) {
  const first = new Promise((resolve) => con.once("notification", resolve));
  await con.query("LISTEN news");
  const other = new Client(options);
  await other.connect();
  await other.query("SELECT pg_notify($1, $2)", ["news", "from another"]);
  const { channel, payload } = await first;
  console.log(channel, payload);
  await other.end();
}

async function cancelled(con) {
  await con.query("SET statement_timeout = '300ms'");
  await fails("timeout", () => con.query("SELECT pg_sleep(30)"));
  await con.query("RESET statement_timeout");
  const asked = con.query("SELECT pg_sleep(30)");
  await new Promise((resolve) => setTimeout(resolve, 200));
  new Client(options).cancel(con, con.activeQuery);
  await fails("cancelled", () => asked);
  shown(await con.query("SELECT 1 AS alive"));
}

async function pooled() {
  const pool = new Pool({ ...options, max: 4 });
  await pool.query("DELETE FROM work");
  await Promise.all(Array.from({ length: 24 }, (_, id) =>
    pool.query("INSERT INTO work (id, s) VALUES ($1, $2)", [id, `p${id}`])));
  shown(await pool.query("SELECT count(*), min(s), max(id) FROM work"));
  await pool.end();
}

async function main() {
  const con = new Client(options);
  await con.connect();
  await con.query(`CREATE TABLE work (id bigint ${enc} PRIMARY KEY, n numeric(12,2) ${enc},
    t timestamptz ${enc}, d date ${enc}, u uuid ${enc}, b bytea ${enc}, a int[] ${enc},
    w text[] ${enc}, f float8 ${enc}, j jsonb ${enc}, s text ${enc} NOT NULL, yes boolean ${enc},
    open int)`);
  await con.end();
  await part("types", typed);
  await part("types, binary", binary, { binary: true });
  await part("named statements", named);
  await part("transactions", transactions);
  await part("errors", errors);
  await part("queued", queued);
  await part("cursors", cursors);
  await part("copy", copied);
  await part("notifications", heard);
  await part("cancel", cancelled);
  console.log("-- pool");
  await pooled();
}

main().catch((error) => {
  console.log("failed: " + said(error));
  process.exit(1);
});
