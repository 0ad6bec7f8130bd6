//! Generation of the two-party trees (Boyle, Gilboa and Ishai 2016).
//!
//! Nothing branches on what is secret, and no address depends on it.

use crate::error::{Error, Result};
use crate::keys::random;
use louver_primitives::fss::{
    Comparison, Group, Header, LessShare, PointShare, Prg, Scheme, Tree, MAX_BITS,
};
use std::array::from_fn;
use zeroize::{Zeroize, Zeroizing};

/// The two shares of the point function that is `payload` at `at` and zero elsewhere.
///
/// `payload` has [`Header::value_blocks`] blocks; the lowest bit of one in [`Group::Tag`] is
/// taken as zero. [`Group::Bits`] has no payload.
///
/// # Errors
/// A header of another scheme, a point outside of the domain, or no randomness.
pub fn point_shares(header: Header, at: u64, payload: &[u128]) -> Result<[PointShare; 2]> {
    check(&header, at, payload, &[Scheme::Point])?;
    let mut path = Path::new()?;
    let levels = header.bits - header.folded();
    for level in 0..levels {
        path.step(u128::from(at >> (header.bits - 1 - level) & 1));
    }
    let payload = Zeroizing::new(match header.group {
        Group::Bits => vec![1 << (at & ((1 << header.folded()) - 1))],
        _ if header.folded() == 1 => {
            let (word, odd) = (
                u128::from(payload[0] as u64),
                u128::from(at & 1).wrapping_neg(),
            );
            vec![word << 64 & odd | word & !odd]
        }
        _ => payload.to_vec(),
    });
    let mut last = match header.group {
        Group::Tag => vec![(path.seed(0) ^ path.seed(1) ^ payload[0]) & !1],
        group => path.value(group, &payload),
    };
    clear_spare(&header, &mut last);
    let [first, second] = path.trees();
    let share = |party, tree| PointShare {
        header: Header { party, ..header },
        tree,
        last: last.clone(),
    };
    Ok([share(0, first), share(1, second)])
}

/// The two shares of the sum of `payload · [x < end]` over the ends, plus `constant`.
///
/// One end in [`Scheme::Less`], two in [`Scheme::Interval`], each with its payload of
/// [`Header::value_blocks`] blocks.
///
/// # Errors
/// A header of another scheme, an end outside of the domain, or no randomness.
pub fn less_shares(
    header: Header,
    ends: &[(u64, &[u128])],
    constant: &[u128],
) -> Result<[LessShare; 2]> {
    let wanted = if ends.len() == 1 {
        Scheme::Less
    } else {
        Scheme::Interval
    };
    let mut parts = [Vec::new(), Vec::new()];
    for (end, payload) in ends {
        check(&header, *end, payload, &[wanted])?;
        let [first, second] = comparison(&header, *end, payload)?;
        parts[0].push(first);
        parts[1].push(second);
    }
    check(&header, 0, constant, &[wanted])?;
    let mut mask = random_blocks(constant.len())?;
    let rest = constant.iter().zip(&*mask);
    let rest = rest.map(|(all, mask)| subtract(header.group, *all, *mask));
    let mut rest = rest.collect::<Vec<_>>();
    clear_spare(&header, &mut mask);
    clear_spare(&header, &mut rest);
    let share = |party, parts, constant| LessShare {
        header: Header { party, ..header },
        parts,
        constant,
    };
    let [first, second] = parts;
    Ok([share(0, first, mask.to_vec()), share(1, second, rest)])
}

/// `payload · [x < end]`: at every level, who leaves the path to the left gains the payload.
fn comparison(header: &Header, end: u64, payload: &[u128]) -> Result<[Comparison; 2]> {
    let mut path = Path::new()?;
    let mut values = Vec::with_capacity(header.bits as usize * payload.len());
    for level in 0..header.bits {
        let bit = u128::from(end >> (header.bits - 1 - level) & 1);
        let gain = payload.iter().map(|block| block & bit.wrapping_neg());
        let gain = Zeroizing::new(gain.collect::<Vec<_>>());
        values.extend(path.value(header.group, &gain));
        if level + 1 < header.bits {
            path.step(bit);
        }
    }
    clear_spare(header, &mut values);
    Ok(path.trees().map(|tree| Comparison {
        tree,
        values: values.clone(),
    }))
}

/// An odd number of words leaves half of a value's last block without use.
fn clear_spare(header: &Header, values: &mut [u128]) {
    if header.group == Group::Words && header.words % 2 == 1 && header.folded() == 0 {
        let blocks = header.value_blocks();
        for last in values.iter_mut().skip(blocks - 1).step_by(blocks) {
            *last &= u128::from(u64::MAX);
        }
    }
}

fn check(header: &Header, at: u64, payload: &[u128], schemes: &[Scheme]) -> Result<()> {
    let inside = at.checked_shr(header.bits).unwrap_or(0) == 0;
    let fits = payload.len() == header.value_blocks() || header.group == Group::Bits;
    let known = Header::decode(&header.encode()).is_ok() && schemes.contains(&header.scheme);
    match (1..=MAX_BITS).contains(&header.bits) && inside && fits && known {
        true => Ok(()),
        false => Err(Error::value(
            "no such share: outside of the domain, or another form",
        )),
    }
}

/// Both parties' states on the way to a secret leaf.
struct Path {
    prg: &'static Prg,
    roots: [u128; 2],
    states: [u128; 2],
    levels: Vec<[u128; 2]>,
}

impl Path {
    fn new() -> Result<Self> {
        let seeds = random_blocks(2)?;
        // The control bits of the roots are the parties.
        let roots = [seeds[0] & !1, seeds[1] | 1];
        Ok(Self {
            prg: Prg::best(),
            roots,
            states: roots,
            levels: Vec::new(),
        })
    }

    fn seed(&self, party: usize) -> u128 {
        self.states[party] & !1
    }

    /// All ones where the party's control bit is set.
    fn control(&self, party: usize) -> u128 {
        (self.states[party] & 1).wrapping_neg()
    }

    /// One level down, to the child that `bit` (0 or 1) names.
    fn step(&mut self, bit: u128) {
        let mut children = [0; 4];
        let seeds = [self.seed(0), self.seed(1)];
        self.prg.expand(&seeds, &[0; 2], &mut children);
        let right = bit.wrapping_neg();
        let [left0, right0, left1, right1] = children;
        // The seeds of the child that is left become equal; so do its control bits, while those
        // of the child that is kept become different. The control bit is not a part of the seed.
        let lost = (left0 & right | right0 & !right) ^ (left1 & right | right1 & !right);
        let seed = lost & !1;
        let level = [
            seed | (left0 ^ left1 ^ bit ^ 1) & 1,
            seed | (right0 ^ right1 ^ bit) & 1,
        ];
        let correction = level[1] & right | level[0] & !right;
        for (party, pair) in children.chunks_exact(2).enumerate() {
            let child = pair[1] & right | pair[0] & !right;
            self.states[party] = child ^ correction & self.control(party);
        }
        self.levels.push(level);
        children.zeroize();
    }

    /// The correction that makes this node's value `payload`.
    fn value(&self, group: Group, payload: &[u128]) -> Vec<u128> {
        let correct = |(at, wanted): (usize, &u128)| {
            let mut values = [0; 2];
            self.prg.values(&self.states, at, &mut values);
            if group == Group::Bits {
                return wanted ^ values[0] ^ values[1];
            }
            let rest = subtract(group, *wanted, subtract(group, values[0], values[1]));
            // The second party's share counts negatively; where it is that one which corrects,
            // the correction does.
            let negative = subtract(group, 0, rest);
            negative & self.control(1) | rest & !self.control(1)
        };
        payload.iter().enumerate().map(correct).collect()
    }

    fn trees(&self) -> [Tree; 2] {
        from_fn(|party| Tree {
            root: self.roots[party],
            levels: self.levels.clone(),
        })
    }
}

impl Drop for Path {
    fn drop(&mut self) {
        self.roots.zeroize();
        self.states.zeroize();
    }
}

/// A difference modulo 2^128, or of two words modulo 2^64.
fn subtract(group: Group, left: u128, right: u128) -> u128 {
    if group == Group::Words {
        let high = (left >> 64).wrapping_sub(right >> 64) << 64;
        return high | u128::from((left as u64).wrapping_sub(right as u64));
    }
    left.wrapping_sub(right)
}

/// Blocks from the operating system.
pub(super) fn random_blocks(count: usize) -> Result<Zeroizing<Vec<u128>>> {
    let mut bytes = Zeroizing::new(vec![0; 16 * count]);
    random(&mut bytes)?;
    let (blocks, _) = bytes.as_chunks();
    let blocks = blocks.iter().map(|block| u128::from_le_bytes(*block));
    Ok(Zeroizing::new(blocks.collect()))
}
