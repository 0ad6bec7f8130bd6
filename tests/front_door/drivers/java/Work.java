import java.io.StringReader;
import java.io.StringWriter;
import java.math.BigDecimal;
import java.sql.*;
import java.time.*;
import java.util.*;
import org.postgresql.PGConnection;

/** What an application does by JDBC; it prints what it sees. Arguments: the URL, the user, and what
 *  follows the type of a column (ENC, or nothing on a server without a front door). */
public final class Work {
  private static String url;
  private static String user;
  private static String enc;

  private interface Part {
    void run(Connection con) throws Exception;
  }

  public static void main(String[] words) throws Exception {
    url = words[0];
    user = words[1];
    enc = words.length > 2 ? words[2] : "";
    try (Connection con = connected("")) {
      try (Statement s = con.createStatement()) {
        s.execute(
            "CREATE TABLE work (id bigint " + enc + " PRIMARY KEY, n numeric(12,2) " + enc
                + ", t timestamptz " + enc + ", d date " + enc + ", u uuid " + enc + ", b bytea "
                + enc + ", a int[] " + enc + ", w text[] " + enc + ", f float8 " + enc + ", j jsonb "
                + enc + ", s text " + enc + " NOT NULL, yes boolean " + enc + ", open int)");
      }
    }
    part("types", "prepareThreshold=1", Work::types);
    part("types by text", "prepareThreshold=0&binaryTransfer=false", Work::types);
    part("types, simple", "preferQueryMode=simple", Work::types);
    part("again and again", "", Work::again);
    part("transactions", "", Work::transactions);
    part("errors", "", Work::errors);
    part("batches", "", Work::batches);
    part("batches, rewritten", "reWriteBatchedInserts=true", Work::batches);
    part("cursors", "defaultRowFetchSize=3", Work::cursors);
    part("updatable", "", Work::updatable);
    part("generated keys", "", Work::generated);
    part("copy", "", Work::copy);
    part("metadata", "", Work::metadata);
    part("notifications", "", Work::notifications);
    part("cancel", "", Work::cancel);
  }

  private static Connection connected(String options) throws SQLException {
    Properties words = new Properties();
    words.setProperty("user", user);
    return DriverManager.getConnection(url + "&" + options, words);
  }

  private static void part(String name, String options, Part part) {
    System.out.println("-- " + name);
    try (Connection con = connected(options)) {
      try (Statement s = con.createStatement()) {
        s.execute("SET timezone = 'UTC'");
        s.execute("DELETE FROM work");
      }
      part.run(con);
    } catch (SQLException error) {
      System.out.println("failed: " + said(error));
    } catch (Exception error) {
      System.out.println("failed: " + error);
    }
  }

  private static String said(SQLException error) {
    return error.getSQLState() + " " + error.getMessage().lines().findFirst().orElse("");
  }

  private static void fails(String what, Callable work) {
    try {
      work.run();
      System.out.println(what + ": no error");
    } catch (SQLException error) {
      System.out.println(what + ": " + said(error));
    }
  }

  /** Of what the front door says in words of its own, the SQLSTATE. */
  private static void failsWith(String what, Callable work) {
    try {
      work.run();
      System.out.println(what + ": no error");
    } catch (SQLException error) {
      System.out.println(what + ": " + error.getSQLState());
    }
  }

  private interface Callable {
    void run() throws SQLException;
  }

  private static final String INSERT =
      "INSERT INTO work VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?::jsonb, ?, ?, ?)";

  private static void fill(PreparedStatement s, Connection con, long id) throws SQLException {
    s.setLong(1, id);
    s.setBigDecimal(2, new BigDecimal("12.50").add(BigDecimal.valueOf(id)));
    s.setObject(3, OffsetDateTime.of(2024, 2, 29, 12, 30, 15, 123456000, ZoneOffset.UTC));
    s.setObject(4, LocalDate.of(2024, 2, 29));
    s.setObject(5, UUID.fromString("00000000-0000-0000-0000-00000000000a"));
    s.setBytes(6, new byte[] {0, 1, (byte) 255, 39, 92});
    s.setArray(7, con.createArrayOf("int4", new Integer[] {1, null, 3}));
    s.setArray(8, con.createArrayOf("text", new String[] {"a b", "q\"x", null, ""}));
    s.setDouble(9, 0.1 + id);
    s.setString(10, "{\"k\": [1, \"z\"]}");
    s.setString(11, "naïve 'quoted' \\ " + id);
    s.setBoolean(12, id % 2 == 0);
    s.setInt(13, (int) id);
  }

  private static void shown(ResultSet rows) throws SQLException {
    ResultSetMetaData about = rows.getMetaData();
    while (rows.next()) {
      StringBuilder line = new StringBuilder();
      for (int i = 1; i <= about.getColumnCount(); i++) {
        Object value = rows.getObject(i);
        if (value instanceof byte[]) {
          value = Arrays.toString((byte[]) value);
        }
        line.append(value).append(" | ");
      }
      System.out.println(line);
    }
  }

  private static void types(Connection con) throws SQLException {
    try (PreparedStatement s = con.prepareStatement(INSERT)) {
      for (long id = 1; id <= 8; id++) {
        fill(s, con, id);
        System.out.println(s.executeUpdate());
      }
      for (int i = 2; i <= 13; i++) {
        s.setNull(i, new int[] {
          Types.NUMERIC, Types.TIMESTAMP_WITH_TIMEZONE, Types.DATE, Types.OTHER, Types.BINARY,
          Types.ARRAY, Types.ARRAY, Types.DOUBLE, Types.VARCHAR, Types.VARCHAR, Types.BIT,
          Types.INTEGER}[i - 2]);
      }
      s.setLong(1, 9);
      s.setString(11, "only that");
      System.out.println(s.executeUpdate());
    }
    try (PreparedStatement s = con.prepareStatement("SELECT * FROM work WHERE id = ?")) {
      ResultSetMetaData about = s.getMetaData();
      for (int i = 1; i <= about.getColumnCount(); i++) {
        System.out.println(about.getColumnName(i) + " " + about.getColumnTypeName(i) + " "
            + about.getPrecision(i) + " " + about.getScale(i) + " " + about.isNullable(i) + " "
            + about.getColumnClassName(i));
      }
      System.out.println("parameter " + s.getParameterMetaData().getParameterTypeName(1));
      for (long id = 1; id <= 10; id++) {
        s.setLong(1, id);
        try (ResultSet rows = s.executeQuery()) {
          shown(rows);
        }
      }
    }
    try (PreparedStatement s = con.prepareStatement("SELECT t, d, u, n, f FROM work WHERE id = ?")) {
      for (int round = 0; round < 7; round++) {
        s.setInt(1, 2);
        try (ResultSet rows = s.executeQuery()) {
          rows.next();
          System.out.println(rows.getObject(1, OffsetDateTime.class) + " "
              + rows.getObject(2, LocalDate.class) + " " + rows.getObject(3, UUID.class) + " "
              + rows.getBigDecimal(4) + " " + rows.getDouble(5) + " " + rows.getTimestamp(1));
        }
      }
    }
    try (PreparedStatement s = con.prepareStatement(
            "SELECT count(*), sum(n), min(d), max(t), avg(f) FROM work WHERE yes = ? AND n > ?")) {
      s.setBoolean(1, true);
      s.setBigDecimal(2, new BigDecimal("15"));
      shown(s.executeQuery());
    }
    try (PreparedStatement s = con.prepareStatement(
            "SELECT id FROM work WHERE id = ANY (?) ORDER BY id")) {
      s.setArray(1, con.createArrayOf("bigint", new Long[] {1L, 3L, 77L}));
      shown(s.executeQuery());
    }
  }

  private static void again(Connection con) throws SQLException {
    try (PreparedStatement in = con.prepareStatement("INSERT INTO work (id, s, n) VALUES (?, ?, ?)");
        PreparedStatement up = con.prepareStatement("UPDATE work SET n = n + ? WHERE id = ?");
        PreparedStatement out = con.prepareStatement("SELECT s, n FROM work WHERE id = ?");
        PreparedStatement off = con.prepareStatement("DELETE FROM work WHERE id = ?")) {
      for (int round = 0; round < 12; round++) {
        in.setLong(1, 100 + round);
        in.setString(2, "round " + round);
        in.setBigDecimal(3, BigDecimal.valueOf(round, 1));
        up.setBigDecimal(1, BigDecimal.ONE);
        up.setLong(2, 100 + round);
        out.setLong(1, 100 + round);
        off.setLong(1, 100 + round - 2);
        System.out.println(in.executeUpdate() + " " + up.executeUpdate());
        shown(out.executeQuery());
        System.out.println(off.executeUpdate());
      }
    }
  }

  private static void transactions(Connection con) throws SQLException {
    con.setAutoCommit(false);
    try (Statement s = con.createStatement()) {
      s.executeUpdate("INSERT INTO work (id, s) VALUES (1, 'first')");
      con.commit();
      s.executeUpdate("INSERT INTO work (id, s) VALUES (2, 'second')");
      con.rollback();
      s.executeUpdate("INSERT INTO work (id, s) VALUES (3, 'third')");
      Savepoint point = con.setSavepoint("here");
      s.executeUpdate("UPDATE work SET s = 'changed'");
      fails("within", () -> s.executeUpdate("INSERT INTO work (id, s) VALUES (3, 'twice')"));
      failsWith("after", () -> s.executeQuery("SELECT 1"));
      con.rollback(point);
      con.releaseSavepoint(point);
      shown(s.executeQuery("SELECT id, s FROM work ORDER BY id"));
      con.commit();
      con.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
      shown(s.executeQuery("SHOW transaction_isolation"));
      con.commit();
      con.setReadOnly(true);
      failsWith("read only", () -> s.executeUpdate("INSERT INTO work (id, s) VALUES (5, 'x')"));
      con.rollback();
      con.setReadOnly(false);
      shown(s.executeQuery("SELECT count(*) FROM work"));
      con.commit();
    }
    con.setAutoCommit(true);
  }

  private static void errors(Connection con) throws SQLException {
    try (Statement s = con.createStatement()) {
      s.executeUpdate("INSERT INTO work (id, s) VALUES (1, 'a')");
      for (String sql : new String[] {
          "INSERT INTO work (id, s) VALUES (1, 'b')", "INSERT INTO work (id) VALUES (2)",
          "SELECT nope FROM work", "SELEC 1", "SELECT * FROM nowhere", "SELECT 1 / 0",
          "SELECT 'x'::int", "INSERT INTO work (id, s, n) VALUES (3, 'c', 99999999999.99)",
          "SELECT id / (id - 1) FROM work"}) {
        fails(sql, () -> s.execute(sql));
      }
      try {
        s.executeUpdate("INSERT INTO work (id, s) VALUES (1, 'b')");
      } catch (org.postgresql.util.PSQLException error) {
        var told = error.getServerErrorMessage();
        System.out.println(told.getConstraint() + " " + told.getDetail() + " " + told.getSeverity());
      }
      shown(s.executeQuery("SELECT id, s FROM work"));
    }
    try (PreparedStatement s = con.prepareStatement("SELECT 10 / ?::int")) {
      s.setInt(1, 0);
      fails("prepared", s::executeQuery);
      s.setInt(1, 5);
      shown(s.executeQuery());
    }
  }

  private static void batches(Connection con) throws SQLException {
    try (PreparedStatement s =
            con.prepareStatement("INSERT INTO work (id, s, d) VALUES (?, ?, ?)")) {
      for (int id = 0; id < 25; id++) {
        s.setLong(1, id);
        s.setString(2, "row " + id);
        s.setObject(3, LocalDate.of(2024, 1, 1).plusDays(id));
        s.addBatch();
      }
      int[] counts = s.executeBatch();
      System.out.println(counts.length + " " + (counts[0] == 1 || counts[0] == -2));
      for (int id = 30; id < 34; id++) {
        s.setLong(1, id == 32 ? 3 : id);
        s.setString(2, "more " + id);
        s.addBatch();
      }
      try {
        s.executeBatch();
        System.out.println("no error");
      } catch (BatchUpdateException error) {
        System.out.println(error.getSQLState());
      }
    }
    try (Statement s = con.createStatement()) {
      shown(s.executeQuery("SELECT count(*), min(d), max(d), max(s) FROM work"));
      s.addBatch("UPDATE work SET s = 'u' WHERE id = 1");
      s.addBatch("DELETE FROM work WHERE id = 2");
      s.addBatch("UPDATE work SET s = 'v' WHERE id = 999");
      System.out.println(Arrays.toString(s.executeBatch()));
      boolean rows = s.execute("SELECT 1; UPDATE work SET s = 'w' WHERE id = 3; SELECT 2");
      System.out.println(rows + " " + s.getMoreResults() + " " + s.getUpdateCount() + " "
          + s.getMoreResults());
    }
  }

  private static void cursors(Connection con) throws SQLException {
    try (Statement s = con.createStatement()) {
      s.executeUpdate(
          "INSERT INTO work (id, s, open) SELECT i, 'row ' || i, i FROM generate_series(1, 20) i");
    }
    con.setAutoCommit(false);
    try (PreparedStatement s =
            con.prepareStatement("SELECT id, s, open FROM work WHERE open > ? ORDER BY id")) {
      s.setFetchSize(4);
      s.setInt(1, 2);
      ResultSet rows = s.executeQuery();
      rows.next();
      try (Statement other = con.createStatement()) {
        // What is changed while a portal is open is not in it.
        other.executeUpdate("UPDATE work SET s = 'changed'");
        other.executeUpdate("INSERT INTO work (id, s, open) VALUES (99, 'late', 99)");
      }
      System.out.println(rows.getString(2));
      shown(rows);
    }
    con.rollback();
    con.setAutoCommit(true);
    try (Statement s = con.createStatement()) {
      s.setMaxRows(5);
      shown(s.executeQuery("SELECT id FROM work ORDER BY id DESC"));
    }
  }

  private static void updatable(Connection con) throws SQLException {
    try (Statement s = con.createStatement()) {
      s.executeUpdate("INSERT INTO work (id, s) VALUES (1, 'a'), (2, 'b'), (3, 'c')");
    }
    try (Statement s = con.createStatement(
            ResultSet.TYPE_SCROLL_INSENSITIVE, ResultSet.CONCUR_UPDATABLE)) {
      ResultSet rows = s.executeQuery("SELECT id, s, n FROM work ORDER BY id");
      rows.absolute(2);
      rows.updateString(2, "bee");
      rows.updateRow();
      rows.last();
      rows.deleteRow();
      rows.moveToInsertRow();
      rows.updateLong(1, 7);
      rows.updateString(2, "seven");
      rows.insertRow();
      rows.first();
      System.out.println(rows.getString("s"));
    }
    try (Statement s = con.createStatement()) {
      shown(s.executeQuery("SELECT id, s, n FROM work ORDER BY id"));
    }
  }

  private static void generated(Connection con) throws SQLException {
    try (Statement s = con.createStatement()) {
      s.execute("DROP TABLE IF EXISTS counted");
      s.execute("CREATE TABLE counted (id serial PRIMARY KEY, s text " + enc + ")");
    }
    try (PreparedStatement s = con.prepareStatement(
            "INSERT INTO counted (s) VALUES (?)", Statement.RETURN_GENERATED_KEYS)) {
      for (String text : new String[] {"a", "b"}) {
        s.setString(1, text);
        s.executeUpdate();
        shown(s.getGeneratedKeys());
      }
      for (String text : new String[] {"c", "d", "e"}) {
        s.setString(1, text);
        s.addBatch();
      }
      s.executeBatch();
      shown(s.getGeneratedKeys());
    }
  }

  private static void copy(Connection con) throws Exception {
    var manager = con.unwrap(PGConnection.class).getCopyAPI();
    System.out.println(manager.copyIn("COPY work (id, s, n) FROM STDIN (FORMAT csv)",
        new StringReader("1,one,1.50\n2,\"two, and\",\n3,three,3\n")));
    StringWriter out = new StringWriter();
    manager.copyOut("COPY (SELECT id, s, n FROM work ORDER BY id) TO STDOUT", out);
    System.out.print(out);
    try {
      manager.copyIn("COPY work (id, s) FROM STDIN", new StringReader("4\tfour\n1\ttwice\n"));
    } catch (SQLException error) {
      System.out.println(said(error));
    }
    try (Statement s = con.createStatement()) {
      shown(s.executeQuery("SELECT count(*) FROM work"));
    }
  }

  private static void metadata(Connection con) throws SQLException {
    try (Statement s = con.createStatement()) {
      s.execute("DROP TABLE IF EXISTS child");
      s.execute("CREATE TABLE child (of_work bigint " + enc + " REFERENCES work, v varchar(7) " + enc
          + " DEFAULT 'x' UNIQUE, CHECK (v <> ''))");
      s.execute("COMMENT ON COLUMN child.v IS 'a remark'");
    }
    DatabaseMetaData about = con.getMetaData();
    System.out.println(about.getDatabaseProductName() + " " + about.getUserName());
    listed(about.getTables(null, "public", "%", new String[] {"TABLE"}),
        "TABLE_SCHEM", "TABLE_NAME", "TABLE_TYPE");
    listed(about.getColumns(null, "public", "work", "%"), "COLUMN_NAME", "DATA_TYPE", "TYPE_NAME",
        "COLUMN_SIZE", "DECIMAL_DIGITS", "IS_NULLABLE", "COLUMN_DEF");
    listed(about.getColumns(null, "public", "child", "v"), "COLUMN_NAME", "TYPE_NAME",
        "COLUMN_SIZE", "COLUMN_DEF", "REMARKS");
    listed(about.getPrimaryKeys(null, "public", "work"), "COLUMN_NAME", "KEY_SEQ", "PK_NAME");
    listed(about.getImportedKeys(null, "public", "child"), "PKTABLE_NAME", "PKCOLUMN_NAME",
        "FKTABLE_NAME", "FKCOLUMN_NAME", "DELETE_RULE");
    listed(about.getExportedKeys(null, "public", "work"), "FKTABLE_NAME", "FKCOLUMN_NAME");
    listed(about.getIndexInfo(null, "public", "child", true, true), "INDEX_NAME", "COLUMN_NAME",
        "NON_UNIQUE");
    listed(about.getSchemas(), "TABLE_SCHEM");
  }

  private static void listed(ResultSet rows, String... names) throws SQLException {
    while (rows.next()) {
      StringBuilder line = new StringBuilder();
      for (String name : names) {
        line.append(rows.getString(name)).append(" | ");
      }
      System.out.println(line);
    }
    System.out.println(".");
  }

  private static void notifications(Connection con) throws SQLException {
    try (Statement s = con.createStatement(); Connection other = connected("");
        Statement there = other.createStatement()) {
      s.execute("LISTEN news");
      there.execute("NOTIFY news, 'from another'");
      var heard = con.unwrap(PGConnection.class).getNotifications(5000);
      System.out.println(heard.length + " " + heard[0].getName() + " " + heard[0].getParameter());
      s.execute("UNLISTEN news");
    }
  }

  private static void cancel(Connection con) throws Exception {
    try (Statement s = con.createStatement()) {
      s.setQueryTimeout(1);
      failsWith("timeout", () -> s.execute("SELECT pg_sleep(30)"));
      s.setQueryTimeout(0);
      Thread other = new Thread(() -> {
        try {
          Thread.sleep(300);
          s.cancel();
        } catch (Exception error) {
          System.out.println(error);
        }
      });
      other.start();
      failsWith("cancelled", () -> s.execute("SELECT pg_sleep(30)"));
      other.join();
      shown(s.executeQuery("SELECT 1"));
    }
  }
}
