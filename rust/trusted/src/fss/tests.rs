//! Shares, evaluated by the other side's code.

use super::{less_shares, point_shares};
use louver_primitives::fss::{Group, Header, LessShare, PointShare, Scheme};
use louver_untrusted::fss::{evaluate_less, evaluate_point, Points};

fn header(scheme: Scheme, group: Group, bits: u32) -> Header {
    Header {
        scheme,
        group,
        bits,
        party: 0,
        parties: 2,
        words: 0,
    }
}

/// Both parties' shares at the points, joined: control bits and values.
fn point(shares: &[PointShare; 2], points: Points<'_>) -> (Vec<u8>, Vec<u128>) {
    let (mut bits, mut values) = (vec![0; points.len()], vec![0; points.len()]);
    for share in shares {
        let mut sink = |first: usize, b: &[u8], v: &[u128]| {
            for (at, (bit, value)) in b.iter().zip(v).enumerate() {
                bits[first + at] ^= bit;
                let sum: &mut u128 = &mut values[first + at];
                *sum = match share.header.group {
                    Group::Tag => *sum ^ value,
                    _ => sum.wrapping_add(*value),
                };
            }
        };
        evaluate_point(share, points, 0..points.len(), &mut sink).unwrap();
    }
    (bits, values)
}

fn less(shares: &[LessShare; 2], points: Points<'_>) -> Vec<u128> {
    let mut values = vec![0_u128; points.len()];
    for share in shares {
        let mut sink = |first: usize, _: &[u8], v: &[u128]| {
            for (sum, value) in values[first..].iter_mut().zip(v) {
                *sum = sum.wrapping_add(*value);
            }
        };
        evaluate_less(share, points, 0..points.len(), &mut sink).unwrap();
    }
    values
}

#[test]
fn every_point_of_small_domains() {
    for bits in 1..=6 {
        let size = 1 << bits;
        for at in 0..size {
            for group in [Group::Tag, Group::Wide] {
                let payload = 0x1234_5678_9abc_def0_1122_3344_5566_7788;
                let head = header(Scheme::Point, group, bits);
                let shares = point_shares(head, at, &[payload]).unwrap();
                let (ones, values) = point(&shares, Points::All(size));
                for x in 0..size {
                    assert_eq!(ones[x as usize], u8::from(x == at));
                    assert_eq!(values[x as usize], payload * u128::from(x == at));
                }
            }
            let head = header(Scheme::Less, Group::Wide, bits);
            let shares = less_shares(head, &[(at, &[7])], &[5]).unwrap();
            let values = less(&shares, Points::All(size));
            for x in 0..size {
                assert_eq!(values[x as usize], 5 + 7 * u128::from(x < at));
            }
        }
    }
}
