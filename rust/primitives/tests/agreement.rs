//! Both backends against num-bigint, on edge and seeded random values.

use louver_primitives::{wide, Backend, FixedBase, Kernel, KernelError, Modulus, ModulusError};
use num_bigint::BigUint;
use std::sync::Arc;

const BACKENDS: [Backend; 2] = [Backend::Portable, Backend::Ifma];
const ROWS: [usize; 6] = [0, 1, 7, 8, 9, 1000];

/// splitmix64: seeded, so failures repeat.
struct Rng(u64);

impl Rng {
    fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.word() as u8).collect()
    }

    fn below(&mut self, n: &BigUint) -> BigUint {
        BigUint::from_bytes_be(&self.bytes(n.to_bytes_be().len() + 8)) % n
    }
}

fn modulus(bits: u64, ones: bool, rng: &mut Rng) -> BigUint {
    let unit = BigUint::from(1u8);
    if ones {
        return (&unit << bits) - unit;
    }
    let mut n = BigUint::from_bytes_be(&rng.bytes((bits as usize).div_ceil(8)));
    n %= &unit << (bits - 1);
    n.set_bit(bits - 1, true);
    n.set_bit(0, true);
    n
}

fn fixed(v: &BigUint, len: usize) -> Vec<u8> {
    let be = v.to_bytes_be();
    [vec![0; len.saturating_sub(be.len())], be].concat()
}

fn pack(values: &[BigUint], len: usize) -> Vec<u8> {
    values.iter().flat_map(|v| fixed(v, len)).collect()
}

/// Values with 0, 1 and n - 1 in front.
fn values(n: &BigUint, rows: usize, rng: &mut Rng) -> Vec<BigUint> {
    let edges = [BigUint::ZERO, BigUint::from(1u8), n - 1u8, n - 2u8, n >> 1];
    let drawn = (0..rows).map(|_| rng.below(n));
    let mut out: Vec<_> = edges.into_iter().chain(drawn).take(rows).collect();
    let at = rng.word() as usize;
    out.rotate_left(if rows == 0 { 0 } else { at % rows });
    out
}

fn each_kernel(f: impl Fn(&Kernel, &BigUint, usize, &mut Rng)) {
    let mut rng = Rng(7);
    for bits in [64, 128, 511, 1024, 1040, 2047, 2048, 3072, 4096] {
        for ones in [false, true] {
            let n = modulus(bits, ones, &mut rng);
            let m = Modulus::from_be_bytes(&fixed(&n, 600)).unwrap();
            assert_eq!(u64::from(m.bits()), bits);
            for backend in BACKENDS {
                f(
                    &Kernel::with_backend(m.clone(), backend),
                    &n,
                    m.byte_len(),
                    &mut rng,
                );
            }
        }
    }
}

fn map2(
    a: &[BigUint],
    b: &[BigUint],
    len: usize,
    f: impl Fn(&BigUint, &BigUint) -> BigUint,
) -> Vec<u8> {
    pack(
        &a.iter().zip(b).map(|(a, b)| f(a, b)).collect::<Vec<_>>(),
        len,
    )
}

#[test]
fn ring_operations() {
    each_kernel(|k, n, len, rng| {
        for rows in ROWS {
            let (a, b) = (values(n, rows, rng), values(n, rows, rng));
            let (ca, cb) = (
                k.load(&pack(&a, len)).unwrap(),
                k.load(&pack(&b, len)).unwrap(),
            );
            assert_eq!(ca.len(), rows);
            assert_eq!(k.store(&ca), pack(&a, len));
            assert_eq!(
                k.store(&k.mul(&ca, &cb)),
                map2(&a, &b, len, |a, b| a * b % n)
            );
            assert_eq!(k.store(&k.square(&ca)), map2(&a, &a, len, |a, b| a * b % n));
            assert_eq!(
                k.store(&k.add(&ca, &cb)),
                map2(&a, &b, len, |a, b| (a + b) % n)
            );
            assert_eq!(
                k.store(&k.sub(&ca, &cb)),
                map2(&a, &b, len, |a, b| (a + n - b) % n)
            );
            assert_eq!(k.store(&k.neg(&ca)), map2(&a, &a, len, |a, _| (n - a) % n));
            let q = rng.below(n);
            let scaled = k.scale(&ca, &k.scalar(&q.to_bytes_be()).unwrap());
            assert_eq!(k.store(&scaled), map2(&a, &a, len, |a, _| a * &q % n));
            let sum = a.iter().sum::<BigUint>() % n;
            assert_eq!(k.sum(&ca), fixed(&sum, len));
            let negated = k.sum(&k.neg(&ca));
            assert_eq!(negated, fixed(&((n - sum) % n), len));
            assert_eq!(
                k.store(&k.one(rows)),
                pack(&vec![BigUint::from(1u8); rows], len)
            );
            let q_rows = k.broadcast(&fixed(&q, len), rows).unwrap();
            assert_eq!(k.store(&q_rows), pack(&vec![q; rows], len));
        }
    });
}

/// Long chains keep every intermediate within the engine's bounds.
#[test]
fn long_chains() {
    each_kernel(|k, n, len, rng| {
        let a = values(n, 9, rng);
        let mut expect = a.clone();
        let first = k.load(&pack(&a, len)).unwrap();
        let mut x = first.clone();
        for step in 0..60 {
            x = match step % 6 {
                0 => k.sub(&k.mul(&x, &first), &k.add(&x, &x)),
                1 => k.neg(&k.square(&x)),
                _ => k.add(&k.neg(&x), &k.mul(&x, &x)),
            };
            for (e, a) in expect.iter_mut().zip(&a) {
                *e = match step % 6 {
                    0 => (&*e * a + n + n - (&*e + &*e)) % n,
                    1 => (n - &*e * &*e % n) % n,
                    _ => (n - &*e + &*e * &*e) % n,
                };
            }
        }
        assert_eq!(k.store(&x), pack(&expect, len));
    });
}

#[test]
fn powers() {
    each_kernel(|k, n, len, rng| {
        let a = values(n, 9, rng);
        let ca = k.load(&pack(&a, len)).unwrap();
        let mut exponents = vec![vec![], vec![0, 0], vec![1], vec![2], vec![0, 0xff, 0xff]];
        exponents.extend([1, 16, 32, 33].map(|len| rng.bytes(len)));
        let pow = |e: &[u8]| map2(&a, &a, len, |a, _| a.modpow(&BigUint::from_bytes_be(e), n));
        for e in &exponents {
            assert_eq!(k.store(&k.pow(&ca, e)), pow(e));
        }
        let all: Vec<&[u8]> = exponents.iter().map(Vec::as_slice).collect();
        for set in [&all[..0], &all[5..6], &all[..], &all[7..9]] {
            let columns = k.pow_many(&ca, set);
            assert_eq!(columns.len(), set.len());
            for (c, e) in columns.iter().zip(set) {
                assert_eq!(k.store(c), pow(e));
            }
        }
        let none = k.load(&[]).unwrap();
        assert!(k.pow(&none, &[3]).is_empty());
        assert!(k.pow_many(&none, &[&[3]])[0].is_empty());
    });
}

#[test]
fn long_exponent() {
    let mut rng = Rng(3);
    let n = modulus(2048, false, &mut rng);
    let m = Modulus::from_be_bytes(&n.to_bytes_be()).unwrap();
    let (a, e) = (values(&n, 9, &mut rng), rng.bytes(256));
    for k in BACKENDS.map(|b| Kernel::with_backend(m.clone(), b)) {
        let got = k.store(&k.pow(&k.load(&pack(&a, 256)).unwrap(), &e));
        let e = BigUint::from_bytes_be(&e);
        assert_eq!(got, map2(&a, &a, 256, |a, _| a.modpow(&e, &n)));
    }
}

#[test]
fn fixed_base() {
    each_kernel(|k, n, len, rng| {
        let (base, factor) = (rng.below(n), rng.below(n));
        let table = FixedBase::new(k, &base.to_bytes_be(), &fixed(&factor, len)).unwrap();
        for rows in [0, 1, 7, 8, 9, 300] {
            let mut e: Vec<[u8; 16]> = (0..rows)
                .map(|_| rng.bytes(16).try_into().unwrap())
                .collect();
            e.iter_mut()
                .zip([[0; 16], [255; 16]])
                .for_each(|(e, edge)| *e = edge);
            let by = values(n, rows, rng);
            let power = |e: &[u8; 16]| base.modpow(&BigUint::from_bytes_be(e), n) * &factor % n;
            let expect: Vec<_> = e.iter().map(power).collect();
            assert_eq!(k.store(&table.pow(k, &e)), pack(&expect, len));
            let column = k.load(&pack(&by, len)).unwrap();
            let got = k.store(&table.pow_mul(k, &e, &column));
            assert_eq!(got, map2(&expect, &by, len, |x, by| x * by % n));
        }
    });
}

#[test]
fn refusals() {
    let refuse = |be: &[u8]| Modulus::from_be_bytes(be).err();
    assert_eq!(refuse(&[]), Some(ModulusError::TooSmall { bits: 0 }));
    assert_eq!(refuse(&[0, 0, 3]), Some(ModulusError::TooSmall { bits: 2 }));
    assert_eq!(refuse(&[0xfe; 32]), Some(ModulusError::Even));
    assert_eq!(
        refuse(&[0xff; 513]),
        Some(ModulusError::TooLarge { bits: 4104 })
    );
    each_kernel(|k, n, len, _| {
        let n = fixed(n, len);
        assert_eq!(
            k.load(&n[1..])
                .err()
                .map(|e| matches!(e, KernelError::Length { .. })),
            Some(true)
        );
        let rows = [vec![0; len * 9], n.clone()].concat();
        assert_eq!(
            k.load(&rows).err(),
            Some(KernelError::NotReduced { row: 9 })
        );
        assert_eq!(k.scalar(&n).err(), Some(KernelError::NotReduced { row: 0 }));
        let long = vec![0; len + 1];
        let rows = [&[7][..], &long];
        let e = KernelError::RowTooLong {
            row: 1,
            got: len + 1,
            row_bytes: len,
        };
        assert_eq!(k.load_rows(rows.into_iter()).err(), Some(e));
        assert!(FixedBase::new(k, &[2], &n).is_err());
        let short = k.load_rows([&[][..], &[7]].into_iter()).unwrap();
        assert_eq!(k.sum(&short).last(), Some(&7));
    });
}

/// A pool of one thread gives the same bytes as the global pool.
#[test]
fn thread_count_does_not_matter() {
    let mut rng = Rng(11);
    let n = modulus(2048, false, &mut rng);
    let k = Kernel::new(Modulus::from_be_bytes(&n.to_bytes_be()).unwrap());
    let bytes = pack(&values(&n, 1000, &mut rng), 256);
    let work = || {
        let c = k.load(&bytes).unwrap();
        (k.store(&k.pow(&c, &[5, 1])), k.sum(&c))
    };
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(1)
        .build()
        .unwrap();
    assert_eq!(pool.install(work), work());
    let shared: Arc<Modulus> = k.modulus().clone();
    assert_eq!(shared.to_be_bytes(), n.to_bytes_be());
}

#[test]
fn single_values() {
    let n = [0x01, 0x00, 0x01];
    let inverse = wide::inverse_mod(&[0x12, 0x34], &n).unwrap();
    assert_eq!(inverse.len(), 3);
    assert_eq!(
        wide::mul_mod(&inverse, &[0x12, 0x34], &n),
        Some(vec![0, 0, 1])
    );
    assert_eq!(wide::inverse_mod(&[6], &[9]), None);
    assert_eq!(wide::gcd(&[0, 12], &[18]), vec![6]);
    assert_eq!(wide::pow_mod(&[3], &[5], &[10]), Some(vec![3]));
    assert_eq!(wide::sub_mod(&[3], &[5], &[10]), Some(vec![8]));
    assert_eq!(wide::add_mod(&[9], &[5], &[0, 10]), Some(vec![0, 4]));
    assert_eq!(wide::reduce(&[1, 0], &[10]), Some(vec![6]));
    assert_eq!(wide::mul(&[16], &[16]), vec![1, 0]);
    assert_eq!(wide::reduce(&[1], &[0]), None);
}

/// Raw columns: a product of `c` of them with a scalar times `R^(c - 1)` is the values' product.
#[test]
fn raw_columns_agree() {
    each_kernel(|k, n, len, rng| {
        for rows in ROWS {
            let (a, b) = (values(n, rows, rng), values(n, rows, rng));
            let load = |v: &[BigUint]| k.load_raw(pack(v, len).chunks_exact(len)).unwrap();
            let (x, y) = (load(&a), load(&b));
            assert_eq!(k.store_raw(&x), pack(&a, len));
            let q = rng.below(n);
            let q_be = q.to_bytes_be();
            let scale =
                |c: &_, power| k.store_raw(&k.scale(c, &k.scalar_times_r(&q_be, power).unwrap()));
            let wanted = |f: &dyn Fn(&BigUint, &BigUint) -> BigUint| {
                let rows: Vec<_> = a.iter().zip(&b).map(|(a, b)| f(a, b) % n).collect();
                pack(&rows, len)
            };
            assert_eq!(scale(&x, 0), wanted(&|a, _| a * &q));
            let product = k.mul(&x, &y);
            assert_eq!(scale(&product, 1), wanted(&|a, b| a * b * &q));
            assert_eq!(
                scale(&k.mul(&product, &y), 2),
                wanted(&|a, b| a * b * b * &q)
            );
            assert_eq!(k.store_raw(&k.add(&x, &y)), wanted(&|a, b| a + b));
            assert_eq!(k.store_raw(&k.sub(&x, &y)), wanted(&|a, b| a + n - b));
            let entered = k.load(&pack(&b, len)).unwrap();
            assert_eq!(k.store_raw(&k.mul(&x, &entered)), wanted(&|a, b| a * b));
        }
        let short = [&[][..], &[7], &[1, 0]];
        let loaded = k.store_raw(&k.load_raw(short.into_iter()).unwrap());
        assert_eq!(loaded, pack(&[0u16, 7, 256].map(BigUint::from), len));
        let refused = k.load_raw([&[1][..], &fixed(n, len)].into_iter());
        assert!(matches!(refused, Err(KernelError::NotReduced { row: 1 })));
    });
}
