//! The same by crate fss-rs: the same generator (Matyas, Meyer and Oseas over AES-128), payloads
//! of 16 bytes, one thread.

use crate::{report, scrambled};
use fss_rs::dcf::{BoundState, CmpFn, Dcf, DcfImpl};
use fss_rs::dpf::{Dpf, DpfImpl, PointFn};
use fss_rs::group::byte::ByteGroup;
use fss_rs::group::Group;
use fss_rs::prg::Aes128MatyasMeyerOseasPrg as Generator;
use fss_rs::Share;

const WHO: &str = "fss-rs";
const KEYS: [[u8; 16]; 4] = [[1; 16], [2; 16], [3; 16], [4; 16]];
const SEEDS: [[u8; 16]; 2] = [[5; 16], [6; 16]];

type Value = ByteGroup<16>;
type PointFunction = DpfImpl<8, 16, Generator<16, 1, 2>>;
type Comparison = DcfImpl<8, 16, Generator<16, 2, 4>>;

pub fn loose(bits: u32, count: usize) {
    let inputs: Vec<[u8; 8]> = scrambled(bits, count)
        .iter()
        .map(|x| input(bits, *x))
        .collect();
    let inputs: Vec<&[u8; 8]> = inputs.iter().collect();
    let mut outputs = vec![Value::zero(); count];
    let (function, share) = point(bits);
    report(WHO, "point", bits, count, || {
        let mut outputs: Vec<&mut Value> = outputs.iter_mut().collect();
        function.eval(false, &share, &inputs, &mut outputs);
        u128::from(outputs[0].0[0])
    });
    let (function, share) = comparison(bits);
    report(WHO, "comparison", bits, count, || {
        let mut outputs: Vec<&mut Value> = outputs.iter_mut().collect();
        function.eval(false, &share, &inputs, &mut outputs);
        u128::from(outputs[0].0[0])
    });
}

pub fn all(bits: u32) {
    let count = 1usize << bits;
    let mut outputs = vec![Value::zero(); count];
    let (function, share) = point(bits);
    report(WHO, "point, all", bits, count, || {
        let mut outputs: Vec<&mut Value> = outputs.iter_mut().collect();
        function.full_eval(false, &share, &mut outputs);
        u128::from(outputs[0].0[0])
    });
    let (function, share) = comparison(bits);
    report(WHO, "comparison, all", bits, count, || {
        let mut outputs: Vec<&mut Value> = outputs.iter_mut().collect();
        function.full_eval(false, &share, &mut outputs);
        u128::from(outputs[0].0[0])
    });
}

pub fn made(bits: u32) {
    let turns = 100;
    report(WHO, "make point", bits, turns, || {
        (0..turns)
            .map(|_| u128::from(point(bits).1.s0s[0][0]))
            .sum()
    });
    report(WHO, "make comparison", bits, turns, || {
        (0..turns)
            .map(|_| u128::from(comparison(bits).1.s0s[0][0]))
            .sum()
    });
}

/// The crate reads an input's bits from the highest on, however many a domain has.
fn input(bits: u32, value: u64) -> [u8; 8] {
    (value << (64 - bits)).to_be_bytes()
}

fn point(bits: u32) -> (PointFunction, Share<16, Value>) {
    let generator = Generator::new(&[&KEYS[0], &KEYS[1]]);
    let function = PointFunction::new_with_filter(generator, bits as usize);
    let asked = PointFn {
        alpha: input(bits, scrambled(bits, 3)[2]),
        beta: ByteGroup([7; 16]),
    };
    let share = function.gen(&asked, [&SEEDS[0], &SEEDS[1]]);
    (function, share)
}

fn comparison(bits: u32) -> (Comparison, Share<16, Value>) {
    let generator = Generator::new(&[&KEYS[0], &KEYS[1], &KEYS[2], &KEYS[3]]);
    let function = Comparison::new_with_filter(generator, bits as usize);
    let asked = CmpFn {
        alpha: input(bits, scrambled(bits, 3)[2]),
        beta: ByteGroup([7; 16]),
        bound: BoundState::LtAlpha,
    };
    let share = function.gen(&asked, [&SEEDS[0], &SEEDS[1]]);
    (function, share)
}
