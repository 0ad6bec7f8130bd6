//! Shares evaluated by a provider on small tables: what is accepted must be evaluated to the end.

use crate::input::{joined, Input};
use louver_trusted::fss::{Below, Point, PointSum, Sum};
use louver_trusted::fss_many::OwfPoint;
use louver_untrusted::fss_table::{sample, search, select, sum, Entries, Records, Rows, Samples};

const ROWS: usize = 16;
const WIDTH: usize = 32;
const RECORDS: [u8; ROWS * WIDTH] = [7; ROWS * WIDTH];
const TAGS: [u8; ROWS * 16] = [9; ROWS * 16];
const CODES: [u64; ROWS] = [0, 1, 2, 3, 9, 9, 9, 12, 15, 1, 0, 63, 62, 33, 4, 5];
const POINTS: [u64; ROWS] = [
    0, 1, 2, 5, 7, 8, 11, 30, 31, 64, 65, 100, 127, 128, 200, 255,
];
const VALUES: [i64; ROWS] = [
    i64::MIN,
    -1,
    0,
    1,
    2,
    3,
    4,
    5,
    6,
    7,
    8,
    9,
    10,
    11,
    12,
    i64::MAX,
];

fn rows() -> Rows<'static> {
    Rows {
        codes: &CODES,
        code_bits: 6,
        index_bits: 4,
        first: 0,
    }
}

pub(crate) fn run(data: &[u8]) {
    let mut input = Input(data);
    let (which, prefix) = (input.byte(), u32::from(input.byte()));
    let shares = input.pieces(3);
    match which % 5 {
        0 => records(&shares, Some(&POINTS)),
        1 => records(&shares, None),
        2 => {
            let entries = Entries {
                points: &POINTS,
                starts: None,
                groups: None,
                values: Some(&VALUES),
                columns: 1,
                group_count: 1,
            };
            let _ = sum(&shares, &entries);
        }
        3 => {
            let _ = search(&shares, &rows(), prefix);
        }
        _ => {
            let samples = Samples {
                rows: rows(),
                records: &RECORDS,
                width: WIDTH,
                tags: &TAGS,
                slots: 4,
                seeds: &[1, 2],
            };
            let _ = sample(&shares, &vec![prefix; shares.len()], &samples);
        }
    }
}

fn records(shares: &[&[u8]], points: Option<&[u64]>) {
    let table = Records {
        points,
        first: 3,
        count: ROWS,
        records: &RECORDS,
        width: WIDTH,
        tags: &TAGS,
    };
    if let Ok(answers) = select(shares, &table) {
        assert!(answers.iter().all(|answer| answer.len() == WIDTH + 16));
    }
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let point = Point::new(8, Some(5)).expect("a point");
    let wide = Point::new(40, None).expect("a point");
    let added = PointSum::new(8, Some(5)).expect("a point");
    let coded = PointSum::new(8, Some(70)).expect("a point");
    let between = Sum::new(8, Some((3, 90))).expect("an interval");
    let below = Below::new(9, 100).expect("an end");
    let many = OwfPoint::new(8, Some(3), 3).expect("a point");
    vec![
        joined(&[0, 0], &[&point.shares()[0], &point.shares()[1]]),
        joined(&[1, 0], &[&wide.shares()[1]]),
        joined(&[0, 0], &[&many.shares()[2]]),
        joined(&[2, 0], &[&added.shares()[0]]),
        joined(&[2, 0], &[&between.shares()[0]]),
        joined(&[2, 0], &[&below.shares()[1]]),
        joined(&[3, 2], &[&coded.shares()[0]]),
        joined(&[4, 2], &[&coded.shares()[1]]),
    ]
}
