//! The numbers of PostgreSQL's built-in types that are read and written as more than bytes.

/// The number of a type.
pub type Oid = u32;

/// To be inferred by the server.
pub(crate) const UNKNOWN: Oid = 0;
pub(crate) const BOOL: Oid = 16;
pub(crate) const BYTEA: Oid = 17;
pub(crate) const NAME: Oid = 19;
pub(crate) const INT8: Oid = 20;
pub(crate) const INT2: Oid = 21;
pub(crate) const INT4: Oid = 23;
pub(crate) const TEXT: Oid = 25;
pub(crate) const OID: Oid = 26;
pub(crate) const FLOAT4: Oid = 700;
pub(crate) const FLOAT8: Oid = 701;
pub(crate) const BPCHAR: Oid = 1042;
pub(crate) const VARCHAR: Oid = 1043;
pub(crate) const DATE: Oid = 1082;
pub(crate) const TIME: Oid = 1083;
pub(crate) const TIMESTAMP: Oid = 1114;
pub(crate) const TIMESTAMPTZ: Oid = 1184;
pub(crate) const INTERVAL: Oid = 1186;
pub(crate) const NUMERIC: Oid = 1700;
pub(crate) const UUID: Oid = 2950;
pub(crate) const JSONB: Oid = 3802;

/// The type of an array of these.
pub(crate) fn array_of(item: Oid) -> Option<Oid> {
    Some(match item {
        BOOL => 1000,
        BYTEA => 1001,
        INT2 => 1005,
        INT4 => 1007,
        INT8 => 1016,
        TEXT => 1009,
        BPCHAR => 1014,
        VARCHAR => 1015,
        TIMESTAMP => 1115,
        TIME => 1183,
        TIMESTAMPTZ => 1185,
        INTERVAL => 1187,
        JSONB => 3807,
        DATE => 1182,
        NUMERIC => 1231,
        FLOAT4 => 1021,
        FLOAT8 => 1022,
        UUID => 2951,
        _ => return None,
    })
}
