//! Answers as providers make them, honest and not.

use super::tests::{one_less, one_point};
use super::{Below, Point, PointSum, Sum};
use crate::Error;
use louver_primitives::fss::{dot, record_tag, LessShare, PointShare, Prg};
use louver_untrusted::fss::Points;

#[test]
fn a_record_opens_or_a_false_reply_is_detected() {
    let records: Vec<[u8; 32]> = (0..50_u8).map(|at| [at + 1; 32]).collect();
    for (at, wanted) in [(7, Some(&records[7])), (60, None)] {
        let point = Point::new(6, Some(at)).unwrap();
        let mut replies = Vec::new();
        for share in point.shares() {
            let share = PointShare::decode(share).unwrap();
            let (bits, values) = one_point(Prg::best(), &share, Points::All(50));
            let (mut record, mut mac) = ([0; 32], 0);
            for (at, entry) in records.iter().enumerate() {
                for (sum, byte) in record.iter_mut().zip(entry) {
                    *sum ^= byte * bits[at];
                }
                mac ^= dot(values[at], record_tag(3, entry));
            }
            replies.push([&record[..], &mac.to_le_bytes()].concat());
        }
        let opened = point.open(&[&replies[0], &replies[1]], 3).unwrap();
        assert_eq!(opened.as_deref(), wanted.map(|record| &record[..]));
        if wanted.is_some() {
            let level = point.open(&[&replies[0], &replies[1]], 4);
            assert!(matches!(level, Err(Error::Verify(_))));
        }
        for bit in 0..48 * 8 {
            let mut lie = replies[0].clone();
            lie[bit / 8] ^= 1 << (bit % 8);
            assert!(matches!(
                point.open(&[&lie, &replies[1]], 3),
                Err(Error::Verify(_))
            ));
        }
        let short = &replies[0][..47];
        assert!(matches!(
            point.open(&[short, &replies[1]], 3),
            Err(Error::Value(_))
        ));
        assert!(matches!(
            point.open(&[&replies[0]], 3),
            Err(Error::Value(_))
        ));
        assert_eq!(format!("{point:?}"), "Point(redacted)");
    }
}

#[test]
fn sums_open_or_a_false_reply_is_detected() {
    let most = u64::MAX;
    let numbers = [5_i64, -7, 1 << 40, -(1 << 62), 11];
    let points = [0, 1, 1000, most - 1, most];
    let add = |share: &[u8]| {
        let values = match LessShare::decode(share) {
            Ok(share) => one_less(Prg::best(), &share, Points::Sorted(&points)),
            Err(_) => {
                let share = PointShare::decode(share).unwrap();
                one_point(Prg::best(), &share, Points::Sorted(&points)).1
            }
        };
        let products = values
            .iter()
            .zip(numbers)
            .map(|(v, n)| v.wrapping_mul(n as u128));
        products.fold(0, u128::wrapping_add).to_le_bytes()
    };
    for (interval, wanted) in [
        (Some((0, most)), numbers.iter().sum()),
        (Some((0, 0)), 5),
        (Some((1, most - 1)), -7 + (1 << 40) - (1 << 62)),
        (Some((most, most)), 11),
        (None, 0),
    ] {
        let question = Sum::new(64, interval).unwrap();
        let [first, second] = [0, 1].map(|party| add(&question.shares()[party]));
        assert_eq!(question.open(&[&first, &second]).unwrap(), [wanted]);
        for bit in 0..128 {
            let mut lie = first;
            lie[bit / 8] ^= 1 << (bit % 8);
            assert!(matches!(
                question.open(&[&lie, &second]),
                Err(Error::Verify(_))
            ));
        }
    }
    for (end, wanted) in [(0, 0), (1, 5), (1 << 64, numbers.iter().sum())] {
        let question = Below::new(64, end).unwrap();
        let [first, second] = [0, 1].map(|party| add(&question.shares()[party]));
        assert_eq!(question.open(&[&first, &second]).unwrap(), [wanted]);
    }
    for (at, wanted) in [(Some(1), -7), (Some(2), 0), (None, 0)] {
        let question = PointSum::new(64, at).unwrap();
        let [first, second] = [0, 1].map(|party| add(&question.shares()[party]));
        assert_eq!(question.open(&[&first, &second]).unwrap(), [wanted]);
    }
    assert!(Sum::new(8, Some((5, 4))).is_err() && Sum::new(8, Some((5, 256))).is_err());
    assert!(Point::new(0, None).is_err() && Point::new(65, None).is_err());
    assert!(Point::new(8, Some(256)).is_err() && Below::new(8, 257).is_err());
}
