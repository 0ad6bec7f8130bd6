//! Where a sampled row goes.

/// The slot of a row in the result table of a seed (`spec/fss-tables.md`, "Samples"), below
/// `slots`, which is at least 1. The tag is a hash already: this only separates the seeds.
pub fn sample_slot(tag: u128, seed: u64, slots: usize) -> usize {
    let (low, high) = (tag as u64, (tag >> 64) as u64);
    let mixed = finish(finish(low ^ seed) ^ high);
    ((u128::from(mixed) * slots as u128) >> 64) as usize
}

/// The finishing step of SplitMix64.
fn finish(word: u64) -> u64 {
    let word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}

#[cfg(test)]
mod tests {
    use super::sample_slot;

    #[test]
    fn slots_are_even_and_differ_by_seed() {
        let mut met = [[0_u32; 16]; 2];
        let mut same = 0;
        for tag in 0..16_000_u128 {
            let tag = tag.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
            let [first, other] = [1, 2].map(|seed| sample_slot(tag, seed, 16));
            met[0][first] += 1;
            met[1][other] += 1;
            same += u32::from(first == other);
        }
        assert!(met
            .iter()
            .flatten()
            .all(|count| (850..1150).contains(count)));
        assert!((850..1150).contains(&same));
        assert_eq!(sample_slot(u128::MAX, 7, 1), 0);
    }
}
