//! Point functions by the one-way-function scheme.

use crate::fss::{Points, Sink, CHUNK};
use crate::{Error, Result};
use louver_primitives::fss::Prg;
use louver_primitives::fss_many::OwfShare;
use std::ops::Range;

/// Gives a share's control bits and values at the points of a range to the sink.
///
/// The lowest bit of a value is the control bit's share too. Costs as many AES calls a point as the
/// party holds seeds of a row, whatever the number of bits.
///
/// # Errors
/// A point outside of the share's domain, or a range outside of the points.
pub fn evaluate_owf(
    share: &OwfShare,
    points: Points<'_>,
    range: Range<usize>,
    sink: &mut dyn Sink,
) -> Result<()> {
    check(share.header.bits, points, &range)?;
    let prg = Prg::best();
    let mut space = Space::default();
    let mut first = range.start;
    while first < range.end {
        let count = (range.end - first).min(CHUNK);
        match points {
            Points::Sorted(given) | Points::Loose(given) => {
                space.place(share, given[first..first + count].iter().copied());
            }
            Points::All(_) => space.place(share, first as u64..(first + count) as u64),
        }
        space.evaluate(prg, share);
        sink.take(first, &space.bits, &space.values);
        first += count;
    }
    Ok(())
}

/// What one chunk needs, kept from chunk to chunk.
#[derive(Default)]
struct Space {
    places: Vec<(usize, usize)>,
    states: Vec<u128>,
    blocks: Vec<u128>,
    values: Vec<u128>,
    bits: Vec<u8>,
}

impl Space {
    fn place(&mut self, share: &OwfShare, points: impl Iterator<Item = u64>) {
        self.places.clear();
        self.places.extend(points.map(|p| share.layout.place(p)));
        self.blocks.resize(self.places.len(), 0);
    }

    fn evaluate(&mut self, prg: &Prg, share: &OwfShare) {
        let held = share.layout.held;
        self.values.clear();
        let start = |&(row, column): &(usize, usize)| share.correction[column] & share.mask(row);
        self.values.extend(self.places.iter().map(start));
        for which in 0..held {
            self.states.clear();
            let state = |&(row, column): &(usize, usize)| {
                // Offsets keep the lowest bit free, which the generator takes for its own.
                share.seeds[row * held + which] ^ (column as u128) << 1
            };
            self.states.extend(self.places.iter().map(state));
            prg.values(&self.states, 0, &mut self.blocks);
            let blocks = self.values.iter_mut().zip(&self.blocks);
            blocks.for_each(|(value, block)| *value ^= block);
        }
        self.bits.clear();
        self.bits.extend(self.values.iter().map(|v| *v as u8 & 1));
    }
}

fn check(bits: u32, points: Points<'_>, range: &Range<usize>) -> Result<()> {
    if range.start > range.end || range.end > points.len() {
        return Err(Error::new("the range is not one of the points"));
    }
    let outside = match points {
        Points::Sorted(points) | Points::Loose(points) => {
            points[range.clone()].iter().any(|point| point >> bits != 0)
        }
        Points::All(_) => range.end as u64 > 1 << bits,
    };
    if outside {
        return Err(Error::new("a point is outside of the share's domain"));
    }
    Ok(())
}
