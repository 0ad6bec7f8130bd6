//! Statements are cut so that what is put together again is what they were.

use louver_proxy::literals::{cut, Class, Cut};
use proptest::prelude::*;
use proptest::sample::select;

fn shape(sql: &str) -> String {
    cut(sql).expect("cut").shape
}

fn values(sql: &str) -> Vec<Option<String>> {
    let literals = cut(sql).expect("cut").literals;
    let text = |value: bytes::Bytes| String::from_utf8(value.to_vec()).expect("a text");
    literals
        .into_iter()
        .map(|literal| literal.value.map(text))
        .collect()
}

#[test]
fn literals_that_stand_alone_are_cut() {
    for (sql, wanted) in [
        ("SELECT a FROM t WHERE b = 5", "SELECT a FROM t WHERE b =$1"),
        (
            "SELECT a FROM t WHERE b=-5 AND c <>'x'",
            "SELECT a FROM t WHERE b=$1 AND c <>$2",
        ),
        (
            "SELECT a FROM t WHERE b =   -5",
            "SELECT a FROM t WHERE b =$1",
        ),
        (
            "INSERT INTO t VALUES (1, NULL, true)",
            "INSERT INTO t VALUES ($1,$2,$3)",
        ),
        (
            "INSERT INTO t VALUES (1, 2),\n (3, 4)",
            "INSERT INTO t VALUES ($1,$2), ($3,$4)",
        ),
        (
            "UPDATE t SET a = 'x', b = b + 1 WHERE c IN (1,2)",
            "UPDATE t SET a =$1, b = b + 1 WHERE c IN ($2,$3)",
        ),
        (
            "SELECT a FROM t WHERE b BETWEEN 1 AND 2 AND c = 3",
            "SELECT a FROM t WHERE b BETWEEN $1 AND $2 AND c =$3",
        ),
        (
            "DELETE FROM t WHERE d = '2024-01-01'::date ;",
            "DELETE FROM t WHERE d =$1",
        ),
    ] {
        assert_eq!(shape(sql), wanted);
    }
}

#[test]
fn others_stay() {
    for sql in [
        "SELECT 5, 'a', f(5) FROM t LIMIT 3",
        "SELECT a FROM t WHERE b = 1 + 2",
        "SELECT a FROM t WHERE b = 'x' || c",
        "SELECT a FROM t WHERE b LIKE 'x%'",
        "SELECT a FROM t WHERE b = 'x'::varchar(3)",
        "SELECT a FROM t WHERE b = -'5'",
        "SELECT a FROM t WHERE b = -5::int8",
        "SELECT a FROM t WHERE b = ANY ('{1}')",
        "SELECT a FROM t WHERE b => 5",
        "SELECT a FROM t WHERE b @> '{}'",
        "SELECT a FROM t WHERE (b, c) IN (SELECT d, 5, e FROM t)",
        "SELECT \"a = 5\" FROM t",
        "SELECT a FROM t WHERE b IS NULL",
    ] {
        let cut = cut(sql).expect(sql);
        assert_eq!((cut.shape.as_str(), cut.literals.len()), (sql, 0));
    }
}

#[test]
fn what_is_not_certain_is_not_cut() {
    for sql in [
        "",
        ";",
        "SELECT 1; SELECT 2",
        "SELECT 5 -- a",
        "SELECT 5 /* a */",
        "SELECT $1",
        "SELECT $$a$$",
        "SELECT 'a' 'b'",
        "SELECT 'a'\n'b'",
        "SELECT E'\\n'",
        "SELECT U&'a'",
        "SELECT B'1'",
        "SELECT 0x1F",
        "SELECT 1_000",
        "SELECT 1e",
        "SELECT 5a",
        "SELECT 'a",
        "SELECT \"a",
        "SELECT (1",
        "SELECT 1)",
        "SELECT a INTO b FROM t WHERE c = 5",
        "COMMIT",
        "INSERT INTO t VALUES (1) ON CONFLICT (a) WHERE b = 5 DO NOTHING",
        "SELECT a[1:2]",
        "SELECT a ? 'b'",
        "CREATE TABLE t (a int)",
        "SELECT E'a\\'",
        "SELECT 1..2",
        "SELECT \u{1}",
    ] {
        assert_eq!(cut(sql), None, "{sql}");
    }
}

#[test]
fn strings_and_numbers_have_their_values() {
    let sql = "INSERT INTO t VALUES ('it''s', E'a\\\\b\\'''c', 'a\\b', - 5, +7, 1.50, 'x'::text)";
    let wanted = ["it's", "a\\b''c", "a\\b", "-5", "7", "1.50", "x"];
    assert_eq!(values(sql), wanted.map(|text| Some(text.to_owned())));
    let classes = |sql: &str| -> Vec<Class> {
        let literals = cut(sql).expect("cut").literals;
        literals.iter().map(|literal| literal.class).collect()
    };
    assert_eq!(
        classes("SELECT a IN (2147483647, 2147483648, 9223372036854775808, 1e2)"),
        [
            Class::Integer,
            Class::Bigint,
            Class::Decimal,
            Class::Decimal
        ]
    );
    assert_eq!(shape("SELECT 1 =- 5"), shape("SELECT 1 = 7"));
}

/// A statement of pieces, some of which are literals that stand alone.
fn statement() -> impl Strategy<Value = String> {
    let literal = prop_oneof![
        "'([a-z ]|''|;|--|/\\*|[$\"é]){0,6}'",
        "E'([a-z]|''|\\\\\\\\|\\\\'){0,6}'",
        "[-+]?[0-9]{1,20}",
        "- [0-9]{1,3}\\.[0-9]{0,3}",
        select(vec!["NULL", "true", "False", "'2024-01-01'::date"]).prop_map(str::to_owned),
    ];
    let blank = || select(vec![" ", "\n", "  ", "\t "]);
    let piece = (literal, blank(), blank(), 0..6_usize).prop_map(|(own, b, c, form)| match form {
        0 => format!("a ={b}{own}{c}"),
        1 => format!("a{b}IN (7,{b}{own},{own})"),
        2 => format!("\"b = 5\" <>{own} "),
        3 => format!("(c{b}BETWEEN {own} AND{c}{own})"),
        4 => format!("EXISTS (VALUES{b}({own},{c}f({own})), ({own}, 1))"),
        _ => format!("b >={own}{c}"),
    });
    prop::collection::vec(piece, 1..5)
        .prop_map(|all| format!("SELECT x WHERE {}", all.join("AND ")))
}

/// The text of a cut statement with its literals in their places again.
fn put_back(cut: &Cut) -> String {
    let mut text = cut.shape.clone();
    for (at, literal) in cut.literals.iter().enumerate().rev() {
        let own = literal.value.as_deref().map(String::from_utf8_lossy);
        let mut own = match (own, literal.class) {
            (None, _) => " NULL ".to_owned(),
            (Some(own), Class::Text) => format!(" '{}'", own.replace('\'', "''")),
            (Some(own), _) => format!(" {own} "),
        };
        if literal.type_ != 0 {
            own += "::date";
        }
        text = text.replace(&format!("${}", at + 1), &own);
    }
    text
}

proptest! {
    #[test]
    fn nothing_panics(sql in ".{0,60}") {
        let _ = cut(&sql);
    }

    #[test]
    fn tokens_of_sql_do_not_panic(
        parts in prop::collection::vec(select(vec![
            "SELECT ", "(", ")", "'", "''", "E'", "\\", "\"", "5", ".", "-", "--", "=", "::",
            "date", " ", ",", "IN", "VALUES", "AND ", "BETWEEN ", "NULL", "é", "$", "/*", ";",
        ]), 0..40)
    ) {
        let _ = cut(&format!("SELECT {}", parts.concat()));
    }

    #[test]
    fn a_shape_with_its_literals_is_the_statement(sql in statement()) {
        let first = cut(&sql).expect("cut");
        let again = cut(&put_back(&first)).expect("cut again");
        prop_assert!(!first.literals.is_empty());
        let tight = |shape: &str| shape.replace(' ', "");
        prop_assert_eq!(tight(&first.shape), tight(&again.shape));
        prop_assert_eq!(&first.literals, &again.literals);
    }
}
