//! Products of many rows: both backends, against num-bigint, at 4,096 bits and less.

use louver_primitives::{Backend, Kernel, Modulus};
use num_bigint::BigUint;

/// splitmix64.
fn bytes(seed: &mut u64, len: usize) -> Vec<u8> {
    let mut next = || {
        *seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (*seed ^ (*seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) as u8
    };
    (0..len).map(|_| next()).collect()
}

#[test]
fn the_product_of_all_rows() {
    let mut seed = 3;
    for bits in [64, 512, 2048, 4096] {
        let mut n = bytes(&mut seed, bits / 8);
        n[0] |= 0x80;
        *n.last_mut().unwrap() |= 1;
        let (modulus, whole) = (
            Modulus::from_be_bytes(&n).unwrap(),
            BigUint::from_bytes_be(&n),
        );
        for rows in [0usize, 1, 2, 7, 8, 9, 127, 128, 129, 300, 4099] {
            if bits == 4096 && rows > 300 {
                continue;
            }
            let mut all: Vec<Vec<u8>> = (0..rows).map(|_| bytes(&mut seed, bits / 8)).collect();
            all.iter_mut().for_each(|row| row[0] = 0);
            let wanted = all.iter().fold(BigUint::from(1u8), |product, row| {
                product * BigUint::from_bytes_be(row) % &whole
            });
            let all: Vec<&[u8]> = all.iter().map(Vec::as_slice).collect();
            for backend in [Backend::Portable, Backend::Ifma] {
                let kernel = Kernel::with_backend(modulus.clone(), backend);
                let actual = kernel.product(&all).unwrap();
                assert_eq!(actual.len(), bits / 8);
                assert_eq!(
                    BigUint::from_bytes_be(&actual),
                    wanted,
                    "{bits} {rows} {backend:?}"
                );
            }
        }
        let kernel = Kernel::new(modulus);
        assert!(kernel.product(&[&n]).is_err());
        let mut many = vec![&n[1..]; 200];
        assert!(kernel.product(&many).is_ok());
        many[150] = &n;
        let error = kernel.product(&many).unwrap_err().to_string();
        assert!(error.contains("row 150"), "{error}");
    }
}
