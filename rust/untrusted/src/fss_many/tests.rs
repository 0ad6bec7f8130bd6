//! What evaluation refuses; what it gives is tested with generation, beside the trusted side.

use super::*;
use crate::fss::Points;

#[test]
fn points_outside_are_refused() {
    let layout = OwfLayout::new(5, 3).unwrap();
    let share = OwfShare {
        header: OwfShare::header(5, 0, 3),
        layout,
        corrected: vec![0; layout.rows().div_ceil(8)],
        seeds: vec![0; layout.rows() * layout.held],
        correction: vec![0; layout.columns()],
    };
    let mut seen = 0;
    let mut sink = |_: usize, bits: &[u8], _: &[u128]| seen += bits.len();
    assert!(evaluate_owf(&share, Points::All(32), 0..32, &mut sink).is_ok());
    assert!(evaluate_owf(&share, Points::All(33), 0..33, &mut sink).is_err());
    assert!(evaluate_owf(&share, Points::Loose(&[31, 0]), 0..2, &mut sink).is_ok());
    assert!(evaluate_owf(&share, Points::Loose(&[31, 32]), 0..2, &mut sink).is_err());
    assert!(evaluate_owf(&share, Points::Sorted(&[1, 2]), 0..3, &mut sink).is_err());
    assert_eq!(seen, 34);
}
