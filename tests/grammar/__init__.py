"""Random statements over all types of DuckDB, on Louver and on plaintext DuckDB.

A grammar (`types`, `expressions`, `parts`, `queries`, `changes`, `definitions`) draws the
statements of a session (`session`; of several connections that change the same tables, `writers`
and `keyed`), both databases run them one by one (`runner`), and whatever they say must be the same.
What DuckDB itself decides anew each time is not drawn:

* the row that DISTINCT ON, LIMIT, first() or a window without a total order chooses: where it
  matters, all columns order the rows;
* which of two values that are equal and yet differ (0.0 and -0.0, a month and thirty days, letters
  under a collation) stands for their group;
* the last digits of sums of floats: such terms are rounded first;
* whether a part that fails is reached before another that leaves the row out: beside AND, joins
  and subqueries, what may fail stands in TRY;
* whether CREATE UNIQUE INDEX in a transaction looks at the rows that were written in it;
* what DuckDB answers by INTERNAL errors, after which a session ends;
* whether date_trunc fails for a column whose statistics are infinite: it is drawn over
  expressions that have none;
* the sign of -0.0, which compressed storage forgets;
* when a transaction's snapshot is taken, which is at its first statement in DuckDB: a BEGIN is
  followed by a query of the same connection;
* which of several new rows stays that conflict with one another by two keys;
* SAMPLE, random(), now() and its kin, approx_* and estimates.
"""
