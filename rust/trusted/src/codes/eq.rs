//! Equality codes: permutations of numbers and of short strings, a hash of long ones.

use super::keys::{Inner, Outer};
use super::output::Codes;
use super::values::{Data, Strings, Values};
use super::CHUNK;
use crate::error::Result;
use louver_primitives::prp::{Prp128, Prp64};
use rayon::prelude::*;
use zeroize::Zeroize;

/// Longest string that fits a block beside its length.
const SHORT: usize = 15;

/// Codes of values under one function.
pub(super) fn codes(inner: &Inner, values: &Values<'_>) -> Result<Codes> {
    let codes = match &values.data {
        Data::Whole(numbers) if values.domain.is_wide() => {
            let numbers = numbers.iter().map(|number| number.cast_unsigned());
            Codes::Wide(wide(&inner.wide, numbers.collect()))
        }
        Data::Whole(numbers) => {
            let numbers = numbers.iter().map(|&number| number as u64);
            Codes::Narrow(narrow(&inner.narrow, numbers.collect()))
        }
        Data::Bits(bits) => Codes::Wide(wide(&inner.wide, bits.clone())),
        Data::Real(bits) => Codes::Narrow(narrow(&inner.narrow, bits.clone())),
        Data::Strings(strings) => Codes::Wide(hashed(inner, strings)),
    };
    codes.checked(values.nulls())
}

/// The permutation of a column over codes of its group. (No code but one becomes 0, and which
/// that is depends on the column's key: it is refused like the others.)
pub(super) fn outer(outer: &Outer, codes: Codes) -> Codes {
    match codes {
        Codes::Narrow(codes) => Codes::Narrow(narrow(&outer.narrow, codes)),
        Codes::Wide(codes) => Codes::Wide(wide(&outer.wide, codes)),
    }
}

fn narrow(prp: &Prp64, mut values: Vec<u64>) -> Vec<u64> {
    let chunks = values.par_chunks_mut(CHUNK);
    chunks.for_each(|chunk| prp.encrypt(chunk));
    values
}

fn wide(prp: &Prp128, mut values: Vec<u128>) -> Vec<u128> {
    let chunks = values.par_chunks_mut(CHUNK);
    chunks.for_each(|chunk| prp.encrypt(chunk));
    values
}

fn hashed(inner: &Inner, strings: &Strings<'_>) -> Vec<u128> {
    let mut codes = vec![0; strings.len()];
    let chunks = codes.par_chunks_mut(CHUNK).enumerate();
    chunks.for_each(|(chunk, codes)| {
        let (mut blocks, mut short) = (Vec::with_capacity(codes.len()), Vec::new());
        let (mut messages, mut long) = (Vec::new(), Vec::new());
        for index in 0..codes.len() {
            let string = strings.get(chunk * CHUNK + index).unwrap_or_default();
            if string.len() > SHORT {
                messages.push(string);
                long.push(index);
            } else {
                let mut block = [0; SHORT + 1];
                block[0] = string.len() as u8;
                block[1..=string.len()].copy_from_slice(string);
                blocks.push(u128::from_be_bytes(block));
                short.push(index);
            }
        }
        inner.short.encrypt(&mut blocks);
        let pairs = short.iter().zip(&blocks);
        pairs.for_each(|(&index, &code)| codes[index] = code);
        let pairs = long.iter().zip(inner.long.of(&messages));
        pairs.for_each(|(&index, code)| codes[index] = code);
        blocks.zeroize();
    });
    codes
}
