//! Row sets: which rows, and how often each, in few bytes (`spec/rowset.md`).
//!
//! What a server says about the rows that it added, and what a client says about rows that it
//! knows. Reading never trusts the bytes: it is bounded by their number and cannot panic.

use crate::error::RowSetError;

/// The version byte of every row set.
const VERSION: u8 = 1;
/// Kinds: runs of ids, bits, or the ids one by one, as a server without a function of ours says.
const RUNS: u8 = 1;
const BITS: u8 = 2;
const IDS: u8 = 3;
const ID_BYTES: usize = 8;
/// Row ids are below this, so that a gap and two flags fit a word.
pub const ROW_LIMIT: u64 = 1 << 61;
/// Most rows of a set, each counted as often as it occurs.
pub const WEIGHT_LIMIT: u64 = 1 << 40;
/// Most planes of a bitmap: bits of the greatest weight.
const PLANES: u64 = 41;
/// Zero bytes from which it pays to begin another segment of a bitmap.
const GAP_BYTES: u64 = 4;

/// Some ids in a row, each `weight` times.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Run {
    /// The first id.
    pub first: u64,
    /// How many ids; at least 1.
    pub count: u64,
    /// How often each; at least 1.
    pub weight: u64,
}

/// The row set of some ids, in any order, repeats counted.
///
/// # Errors
/// An id that is negative or too large, or too many of them.
pub fn from_ids(ids: &mut [i64]) -> Result<Vec<u8>, RowSetError> {
    if !ids.is_sorted() {
        // The merge sort that finds ascending pieces: lists come as a few of them.
        ids.sort();
    }
    let outside = |id: &i64| !u64::try_from(*id).is_ok_and(|id| id < ROW_LIMIT);
    if ids.first().is_some_and(outside) || ids.last().is_some_and(outside) {
        return Err(RowSetError::Id);
    }
    from_runs(&merged(ids))
}

/// The runs of ids in ascending order.
fn merged(ids: &[i64]) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let mut rest = ids;
    while let Some(&id) = rest.first() {
        let weight = rest.iter().take_while(|&&other| other == id).count();
        rest = &rest[weight..];
        let (first, weight) = (id.cast_unsigned(), weight as u64);
        match runs.last_mut() {
            Some(run) if run.weight == weight && run.first + run.count == first => run.count += 1,
            _ => runs.push(Run {
                first,
                count: 1,
                weight,
            }),
        }
    }
    runs
}

/// The row set of some runs, ascending and apart from each other.
///
/// # Errors
/// Runs that are empty, touch ids twice, descend, or hold too many or too large ids.
pub fn from_runs(runs: &[Run]) -> Result<Vec<u8>, RowSetError> {
    let (mut end, mut total) = (0, 0);
    for run in runs {
        (end, total) = admitted(*run, end, total)?;
    }
    let mut out = vec![VERSION, RUNS];
    put(&mut out, runs.len() as u64);
    end = 0;
    for run in runs {
        let flags = u64::from(run.count > 1) | u64::from(run.weight > 1) << 1;
        put(&mut out, (run.first - end) << 2 | flags);
        if run.count > 1 {
            put(&mut out, run.count - 2);
        }
        if run.weight > 1 {
            put(&mut out, run.weight - 2);
        }
        end = run.first + run.count;
    }
    let most = runs.iter().fold(0, |bits, run| bits | run.weight);
    if bits_size(runs, most) < out.len() as u64 {
        return Ok(bits(runs, most));
    }
    Ok(out)
}

/// Gives the runs of a row set, ascending within a plane, to `give`. A row's weight is the sum of
/// the weights of all runs that hold it.
///
/// # Errors
/// Bytes that are not a row set, or too many rows.
pub fn read(bytes: &[u8], mut give: impl FnMut(Run)) -> Result<(), RowSetError> {
    let [VERSION, kind, rest @ ..] = bytes else {
        return Err(RowSetError::Malformed);
    };
    let mut rest = rest;
    match *kind {
        RUNS => read_runs(&mut rest, &mut give)?,
        BITS => read_bits(&mut rest, &mut give)?,
        IDS => read_ids(&mut rest, &mut give)?,
        _ => return Err(RowSetError::Malformed),
    }
    if rest.is_empty() {
        Ok(())
    } else {
        Err(RowSetError::Malformed)
    }
}

/// The end of a run and the new total, if it may follow a run that ended at `end`.
fn admitted(run: Run, end: u64, total: u64) -> Result<(u64, u64), RowSetError> {
    let next = run.first.checked_add(run.count);
    let next = next.filter(|next| *next <= ROW_LIMIT && run.first >= end);
    let next = next.ok_or(RowSetError::Id)?;
    let rows = run.count.checked_mul(run.weight);
    let total = rows
        .filter(|rows| *rows > 0)
        .and_then(|rows| rows.checked_add(total));
    let total = total.filter(|total| *total <= WEIGHT_LIMIT);
    Ok((next, total.ok_or(RowSetError::Weight)?))
}

fn read_runs(rest: &mut &[u8], give: &mut impl FnMut(Run)) -> Result<(), RowSetError> {
    let (mut end, mut total) = (0u64, 0);
    for _ in 0..take(rest)? {
        let head = take(rest)?;
        let mut optional = |flag: u64| match head & flag {
            0 => Ok(1),
            _ => take(rest)?.checked_add(2).ok_or(RowSetError::Weight),
        };
        let (count, weight) = (optional(1)?, optional(2)?);
        let first = end.checked_add(head >> 2).ok_or(RowSetError::Id)?;
        let run = Run {
            first,
            count,
            weight,
        };
        (end, total) = admitted(run, end, total)?;
        give(run);
    }
    Ok(())
}

fn read_bits(rest: &mut &[u8], give: &mut impl FnMut(Run)) -> Result<(), RowSetError> {
    let planes = take(rest)?;
    if planes > PLANES {
        return Err(RowSetError::Weight);
    }
    let mut total = 0;
    for plane in 0..planes {
        let (mut cursor, mut end) = (0u64, 0);
        for _ in 0..take(rest)? {
            let (gap, length) = (take(rest)?, take(rest)?);
            let start = cursor.checked_add(gap).filter(|s| *s < ROW_LIMIT / 8);
            let start = start.ok_or(RowSetError::Id)?;
            let length = usize::try_from(length).map_err(|_| RowSetError::Malformed)?;
            let (bytes, after) = rest
                .split_at_checked(length)
                .ok_or(RowSetError::Malformed)?;
            *rest = after;
            ones(bytes, start * 8, |first, count| {
                let run = Run {
                    first,
                    count,
                    weight: 1 << plane,
                };
                (end, total) = admitted(run, end, total)?;
                give(run);
                Ok(())
            })?;
            cursor = start + length as u64;
        }
    }
    Ok(())
}

fn read_ids(rest: &mut &[u8], give: &mut impl FnMut(Run)) -> Result<(), RowSetError> {
    let (words, left) = rest.as_chunks::<ID_BYTES>();
    *rest = left;
    let mut ids: Vec<i64> = words.iter().map(|word| i64::from_be_bytes(*word)).collect();
    ids.sort_unstable();
    if ids.first().is_some_and(|id| *id < 0) {
        return Err(RowSetError::Id);
    }
    let (mut end, mut total) = (0, 0);
    for run in merged(&ids) {
        (end, total) = admitted(run, end, total)?;
        give(run);
    }
    Ok(())
}

/// Gives every stretch of one bits; bit 0 of the first byte is number `base`.
fn ones(
    bytes: &[u8],
    base: u64,
    mut give: impl FnMut(u64, u64) -> Result<(), RowSetError>,
) -> Result<(), RowSetError> {
    let (mut begin, mut inside, mut at) = (0, false, base);
    for chunk in bytes.chunks(8) {
        let mut wide = [0; 8];
        wide[..chunk.len()].copy_from_slice(chunk);
        let word = u64::from_le_bytes(wide);
        let mut bit = 0;
        while bit < 64 {
            let left = if inside { !(word >> bit) } else { word >> bit };
            let skip = left.trailing_zeros().min(64 - bit);
            bit += skip;
            if bit == 64 {
                break;
            }
            if inside {
                give(begin, at + u64::from(bit) - begin)?;
            } else {
                begin = at + u64::from(bit);
            }
            inside = !inside;
        }
        at += 64;
    }
    // A last word is filled up with zeros, so what is open ends with a whole word.
    if inside {
        give(begin, at - begin)?;
    }
    Ok(())
}

/// The bitmap's segments of one plane: first byte, and past the last.
fn segments(runs: &[Run], plane: u32, mut give: impl FnMut(u64, u64)) {
    let mut open: Option<(u64, u64)> = None;
    for run in runs.iter().filter(|run| run.weight >> plane & 1 == 1) {
        let (first, end) = (run.first / 8, (run.first + run.count).div_ceil(8));
        open = match open {
            Some((begin, last)) if first < last + GAP_BYTES => Some((begin, last.max(end))),
            Some((begin, last)) => {
                give(begin, last);
                Some((first, end))
            }
            None => Some((first, end)),
        };
    }
    if let Some((begin, last)) = open {
        give(begin, last);
    }
}

/// Bytes of the bitmap, or a few more.
fn bits_size(runs: &[Run], most: u64) -> u64 {
    let mut size = 3;
    for plane in 0..u64::BITS - most.leading_zeros() {
        let (mut cursor, mut count) = (0, 0);
        segments(runs, plane, |begin, end| {
            size += width(begin - cursor) + width(end - begin) + (end - begin);
            (cursor, count) = (end, count + 1);
        });
        size += width(count);
    }
    size
}

fn bits(runs: &[Run], most: u64) -> Vec<u8> {
    let planes = u64::BITS - most.leading_zeros();
    let mut out = vec![VERSION, BITS];
    put(&mut out, u64::from(planes));
    for plane in 0..planes {
        let mut ranges = Vec::new();
        segments(runs, plane, |begin, end| ranges.push((begin, end)));
        put(&mut out, ranges.len() as u64);
        let mut runs = runs
            .iter()
            .filter(|run| run.weight >> plane & 1 == 1)
            .peekable();
        let mut cursor = 0;
        for (begin, end) in ranges {
            put(&mut out, begin - cursor);
            put(&mut out, end - begin);
            let start = out.len();
            out.resize(start + (end - begin) as usize, 0);
            let bytes = &mut out[start..];
            while let Some(run) = runs.next_if(|run| run.first < end * 8) {
                set(bytes, run.first - begin * 8, run.count);
            }
            cursor = end;
        }
    }
    out
}

fn set(bytes: &mut [u8], first: u64, count: u64) {
    let (mut at, end) = (first as usize, (first + count) as usize);
    while at < end {
        if at.is_multiple_of(8) && end - at >= 8 {
            let whole = (end - at) / 8;
            bytes[at / 8..][..whole].fill(0xff);
            at += whole * 8;
        } else {
            bytes[at / 8] |= 1 << (at % 8);
            at += 1;
        }
    }
}

/// Appends a number in groups of seven bits, the lowest first, the top bit set on all but the last.
fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Bytes that [`put`] takes.
fn width(number: u64) -> u64 {
    u64::from((u64::BITS - number.leading_zeros()).div_ceil(7).max(1))
}

fn take(rest: &mut &[u8]) -> Result<u64, RowSetError> {
    let mut number = 0u64;
    for shift in (0..64).step_by(7) {
        let (&byte, after) = rest.split_first().ok_or(RowSetError::Malformed)?;
        *rest = after;
        let part = u64::from(byte & 0x7f);
        if part << shift >> shift != part {
            return Err(RowSetError::Malformed);
        }
        number |= part << shift;
        if byte < 0x80 {
            return Ok(number);
        }
    }
    Err(RowSetError::Malformed)
}
