// Work does what an application does with pgx, and prints what it sees. Arguments: the URL, and
// what follows the type of a column (ENC, or nothing).
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
)

var (
	ctx = context.Background()
	url = os.Args[1]
	enc = strings.Join(os.Args[2:], "")
)

const insert = "INSERT INTO work VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)"

func connected(mode pgx.QueryExecMode) *pgx.Conn {
	config, err := pgx.ParseConfig(url)
	must(err)
	config.DefaultQueryExecMode = mode
	con, err := pgx.ConnectConfig(ctx, config)
	must(err)
	return con
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func part(name string, mode pgx.QueryExecMode, work func(*pgx.Conn)) {
	fmt.Println("--", name)
	con := connected(mode)
	defer con.Close(ctx)
	defer func() {
		if failed := recover(); failed != nil {
			fmt.Println("failed:", failed)
		}
	}()
	must(exec(con, "SET timezone = 'UTC'"))
	must(exec(con, "DELETE FROM work"))
	work(con)
}

func exec(con *pgx.Conn, sql string, values ...any) error {
	_, err := con.Exec(ctx, sql, values...)
	return err
}

func code(err error) string {
	var said *pgconn.PgError
	if errors.As(err, &said) {
		return fmt.Sprint(said.Code, " ", said.ConstraintName, " ", said.ColumnName, " ", said.Position)
	}
	return fmt.Sprint(err)
}

func shown(con *pgx.Conn, sql string, values ...any) {
	rows, err := con.Query(ctx, sql, values...)
	must(err)
	defer rows.Close()
	for rows.Next() {
		row, err := rows.Values()
		must(err)
		for i, value := range row {
			switch value := value.(type) {
			case time.Time:
				row[i] = value.UTC().Format(time.RFC3339Nano)
			case pgtype.Numeric:
				text, err := value.Value()
				must(err)
				row[i] = text
			}
		}
		fmt.Printf("%v\n", row)
	}
	if rows.Err() != nil {
		fmt.Println("error:", code(rows.Err()))
		return
	}
	fmt.Println(rows.CommandTag())
}

func values(id int) []any {
	amount, moment := pgtype.Numeric{}, time.Date(2024, 2, 29, 12, 30, 15, 123456000, time.UTC)
	must(amount.Scan(fmt.Sprintf("%d.25", id)))
	three, word := int32(3), "q\"x"
	return []any{
		id, amount, moment, moment, "00000000-0000-0000-0000-00000000000c",
		[]byte{0, 1, 255, 39, 92}, []*int32{nil, &three}, []*string{&word, nil}, 0.5 + float64(id),
		map[string]any{"k": []any{1, "z"}}, fmt.Sprintf("naïve 'quoted' \\ %d", id), id%2 == 0, id,
	}
}

func types(con *pgx.Conn) {
	for id := 1; id <= 3; id++ {
		tag, err := con.Exec(ctx, insert, values(id)...)
		must(err)
		fmt.Println(tag)
	}
	must(exec(con, "INSERT INTO work (id, s) VALUES ($1, $2)", 9, "only"))
	for _, id := range []int{1, 2, 3, 9, 10, 1, 2} {
		shown(con, "SELECT * FROM work WHERE id = $1", id)
	}
	shown(con, "SELECT count(*), sum(n), min(d), max(t) FROM work WHERE yes = $1", true)
	shown(con, "SELECT id FROM work WHERE id = ANY ($1) ORDER BY id", []int64{1, 3, 77})
	var moment time.Time
	var id pgtype.UUID
	var numbers []*int32
	must(con.QueryRow(ctx, "SELECT t, u, a FROM work WHERE id = $1", 2).Scan(&moment, &id, &numbers))
	fmt.Println(moment.UTC(), id.String(), numbers[0] == nil, *numbers[1])
	for round := 0; round < 6; round++ {
		must(exec(con, "UPDATE work SET n = n + 1, s = $2 WHERE id = $1", 2, fmt.Sprint("up ", round)))
		shown(con, "SELECT n, s FROM work WHERE id = $1", 2)
	}
	tag, err := con.Exec(ctx, "DELETE FROM work WHERE id = $1", 2)
	fmt.Println(tag, err)
}

func transactions(con *pgx.Conn) {
	tx, err := con.Begin(ctx)
	must(err)
	_, err = tx.Exec(ctx, "INSERT INTO work (id, s) VALUES (1, 'first')")
	must(err)
	inner, err := tx.Begin(ctx) // a savepoint
	must(err)
	_, err = inner.Exec(ctx, "INSERT INTO work (id, s) VALUES (1, 'twice')")
	fmt.Println(code(err))
	_, err = inner.Exec(ctx, "SELECT 1")
	fmt.Println(code(err))
	must(inner.Rollback(ctx))
	must(tx.Commit(ctx))
	tx, err = con.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	must(err)
	_, err = tx.Exec(ctx, "DELETE FROM work")
	fmt.Println(code(err))
	must(tx.Rollback(ctx))
	shown(con, "SELECT id, s FROM work")
}

func failures(con *pgx.Conn) {
	must(exec(con, "INSERT INTO work (id, s) VALUES (1, 'a')"))
	for _, sql := range []string{
		"INSERT INTO work (id, s) VALUES (1, 'b')", "INSERT INTO work (id) VALUES (2)",
		"SELECT nope FROM work", "SELEC 1", "SELECT * FROM nowhere", "SELECT 1 / 0",
	} {
		fmt.Println(sql, code(exec(con, sql)))
	}
	fmt.Println(code(exec(con, "SELECT 1 / $1::int", 0)))
	shown(con, "SELECT 4 / $1::int", 2)
}

func batches(con *pgx.Conn) {
	batch := &pgx.Batch{}
	for id := 0; id < 20; id++ {
		batch.Queue("INSERT INTO work (id, s) VALUES ($1, $2)", id, fmt.Sprint("row ", id))
	}
	batch.Queue("SELECT count(*) FROM work").QueryRow(func(row pgx.Row) error {
		var count int
		err := row.Scan(&count)
		fmt.Println(count)
		return err
	})
	fmt.Println(con.SendBatch(ctx, batch).Close())
	bad := &pgx.Batch{}
	bad.Queue("INSERT INTO work (id, s) VALUES (100, 'x')")
	bad.Queue("INSERT INTO work (id, s) VALUES (1, 'twice')")
	bad.Queue("INSERT INTO work (id, s) VALUES (101, 'y')")
	fmt.Println(code(con.SendBatch(ctx, bad).Close()))
	shown(con, "SELECT count(*), max(id) FROM work")
}

// Pipelines, each with a Sync of its own in the middle.
func pipelines(con *pgx.Conn) {
	pipe := con.PgConn().StartPipeline(ctx)
	for id := 0; id < 3; id++ {
		for _, key := range []string{fmt.Sprint(id), fmt.Sprint(id % 2)} {
			pipe.SendQueryParams("INSERT INTO work (id, s) VALUES ($1, $2)",
				[][]byte{[]byte(key), []byte("piped")}, nil, nil, nil)
		}
		must(pipe.Sync())
	}
	for {
		results, err := pipe.GetResults()
		if err != nil {
			fmt.Println(code(err))
			continue
		}
		switch results := results.(type) {
		case *pgconn.ResultReader:
			tag, err := results.Close()
			fmt.Println(tag, err != nil)
			continue
		case *pgconn.PipelineSync:
			fmt.Println("sync")
			continue
		}
		break
	}
	must(pipe.Close())
	shown(con, "SELECT count(*) FROM work")
}

func cursors(con *pgx.Conn) {
	must(exec(con, "INSERT INTO work (id, s) SELECT i, 'row ' || i FROM generate_series(1, 9) i"))
	tx, err := con.Begin(ctx)
	must(err)
	_, err = tx.Exec(ctx, "DECLARE c CURSOR FOR SELECT id, s FROM work ORDER BY id")
	must(err)
	for round := 0; round < 3; round++ {
		shown(con, "FETCH 4 FROM c")
	}
	must(tx.Commit(ctx))
}

func copied(con *pgx.Conn) {
	rows := [][]any{}
	for id := 0; id < 50; id++ {
		rows = append(rows, []any{int64(id), fmt.Sprint("row ", id), time.Date(2024, 1, 1+id, 0, 0, 0, 0, time.UTC)})
	}
	count, err := con.CopyFrom(ctx, pgx.Identifier{"work"}, []string{"id", "s", "d"}, pgx.CopyFromRows(rows))
	fmt.Println(count, err)
	count, err = con.CopyFrom(ctx, pgx.Identifier{"work"}, []string{"id", "s", "d"}, pgx.CopyFromRows(rows[:2]))
	fmt.Println(count, code(err))
	var out bytes.Buffer
	_, err = con.PgConn().CopyTo(ctx, &out, "COPY (SELECT id, s, d FROM work WHERE id < 3 ORDER BY id) TO STDOUT")
	fmt.Println(out.String(), err)
	shown(con, "SELECT count(*), max(d) FROM work")
}

func notifications(con *pgx.Conn) {
	must(exec(con, "LISTEN news"))
	other := connected(pgx.QueryExecModeSimpleProtocol)
	defer other.Close(ctx)
	must(exec(other, "NOTIFY news, 'from another'"))
	soon, done := context.WithTimeout(ctx, 10*time.Second)
	defer done()
	heard, err := con.WaitForNotification(soon)
	must(err)
	fmt.Println(heard.Channel, heard.Payload)
}

func cancel(con *pgx.Conn) {
	go func() {
		time.Sleep(300 * time.Millisecond)
		must(con.PgConn().CancelRequest(ctx))
	}()
	fmt.Println(code(exec(con, "SELECT pg_sleep(30)")))
	shown(con, "SELECT 1")
}

func pooled() {
	fmt.Println("-- pool")
	config, err := pgxpool.ParseConfig(url)
	must(err)
	config.MaxConns = 4
	pool, err := pgxpool.NewWithConfig(ctx, config)
	must(err)
	defer pool.Close()
	_, err = pool.Exec(ctx, "DELETE FROM work")
	must(err)
	ends := make(chan error)
	for id := 0; id < 24; id++ {
		go func(id int) {
			_, err := pool.Exec(ctx, "INSERT INTO work (id, s) VALUES ($1, $2)", id, fmt.Sprint("p", id))
			ends <- err
		}(id)
	}
	for id := 0; id < 24; id++ {
		must(<-ends)
	}
	var count, most int
	must(pool.QueryRow(ctx, "SELECT count(*), max(id) FROM work").Scan(&count, &most))
	fmt.Println(count, most)
}

func main() {
	con := connected(pgx.QueryExecModeCacheStatement)
	must(exec(con, fmt.Sprintf(`CREATE TABLE work (id bigint %[1]s PRIMARY KEY, n numeric(12,2) %[1]s,
		t timestamptz %[1]s, d date %[1]s, u uuid %[1]s, b bytea %[1]s, a int[] %[1]s, w text[] %[1]s,
		f float8 %[1]s, j jsonb %[1]s, s text %[1]s NOT NULL, yes boolean %[1]s, open int)`, enc)))
	must(con.Close(ctx))
	part("types", pgx.QueryExecModeCacheStatement, types)
	part("types, described", pgx.QueryExecModeCacheDescribe, types)
	part("types, exec", pgx.QueryExecModeExec, types)
	part("types, simple", pgx.QueryExecModeSimpleProtocol, types)
	part("transactions", pgx.QueryExecModeCacheStatement, transactions)
	part("errors", pgx.QueryExecModeCacheStatement, failures)
	part("batches", pgx.QueryExecModeCacheStatement, batches)
	part("pipelines", pgx.QueryExecModeCacheStatement, pipelines)
	part("cursors", pgx.QueryExecModeCacheStatement, cursors)
	part("copy", pgx.QueryExecModeCacheStatement, copied)
	part("notifications", pgx.QueryExecModeCacheStatement, notifications)
	part("cancel", pgx.QueryExecModeCacheStatement, cancel)
	pooled()
}
