//! Answers of providers, opened by the client that sent the question.

use crate::input::{joined, Input};
use louver_trusted::fss::{Below, Point, PointSum, Sample, Sum};
use louver_trusted::fss_many::OwfPoint;
use std::sync::LazyLock;

struct Asked {
    point: Point,
    point_sum: PointSum,
    sum: Sum,
    below: Below,
    sample: Sample,
    many: OwfPoint,
}

static ASKED: LazyLock<Asked> = LazyLock::new(|| Asked {
    point: Point::new(8, Some(5)).expect("a point"),
    point_sum: PointSum::new(8, Some(5)).expect("a point"),
    sum: Sum::new(8, Some((3, 90))).expect("an interval"),
    below: Below::new(8, 100).expect("an end"),
    sample: Sample::new(&[(8, Some(5))]).expect("a sample"),
    many: OwfPoint::new(8, Some(5), 3).expect("a point"),
});

pub(crate) fn run(data: &[u8]) {
    let mut input = Input(data);
    let (which, level, slots) = (input.byte(), u32::from(input.byte()), input.byte());
    let replies = input.pieces(4);
    let questions = &*ASKED;
    match which % 6 {
        0 => drop(questions.point.open(&replies, level)),
        1 => drop(questions.point_sum.open(&replies)),
        2 => drop(questions.sum.open(&replies)),
        3 => drop(questions.below.open(&replies)),
        4 => {
            let width = 16 * usize::from(slots >> 4);
            let slots = usize::from(slots & 15);
            drop(questions.sample.open(&replies, width, slots, &[1, 2]));
        }
        _ => drop(questions.many.open(&replies, level)),
    }
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let (one, two) = ([0x5a; 48], [0; 48]);
    let mut seeds: Vec<Vec<u8>> = (0..6)
        .flat_map(|which| {
            let head = [which, 1, 0x12];
            [
                joined(&head, &[&one, &one]),
                joined(&head, &[&one, &two, &two]),
            ]
        })
        .collect();
    seeds.push(joined(&[4, 0, 0x11], &[&[3; 96], &[3; 96]]));
    seeds.push(joined(&[4, 0, 0x12], &[&[0; 192], &[0; 192]]));
    seeds
}
