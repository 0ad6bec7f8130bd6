//! Quantiles of the normal distribution, the same on every machine: nothing but IEEE 754 additions,
//! products, quotients and square roots in a fixed order.

/// The z below which a standard normal variable is with probability `p`, for 0 < p < 1: algorithm
/// AS 241 (Wichura, Applied Statistics 37, 1988), about 16 digits.
pub(super) fn quantile(p: f64) -> f64 {
    let q = p - 0.5;
    if q.abs() <= 0.425 {
        let r = 0.180_625 - q * q;
        return q * (polynomial(r, &MIDDLE.0) / polynomial(r, &MIDDLE.1));
    }
    let tail = if q < 0.0 { p } else { 1.0 - p };
    let r = (-ln(tail)).sqrt();
    let z = if r <= 5.0 {
        let r = r - 1.6;
        polynomial(r, &NEAR.0) / polynomial(r, &NEAR.1)
    } else {
        let r = r - 5.0;
        polynomial(r, &FAR.0) / polynomial(r, &FAR.1)
    };
    if q < 0.0 {
        -z
    } else {
        z
    }
}

/// Highest power first (Horner).
fn polynomial(x: f64, coefficients: &[f64; 8]) -> f64 {
    coefficients.iter().fold(0.0, |sum, c| sum * x + c)
}

/// The natural logarithm of a normal positive number: ln(2^e · m) with m between √½ and √2, by the
/// series 2·artanh((m − 1)/(m + 1)).
fn ln(x: f64) -> f64 {
    const FRACTION: u64 = (1 << 52) - 1;
    let bits = x.to_bits();
    let mut exponent = (bits >> 52) as i64 - 1023;
    let mut m = f64::from_bits(bits & FRACTION | 1023 << 52);
    if m > std::f64::consts::SQRT_2 {
        m *= 0.5;
        exponent += 1;
    }
    let s = (m - 1.0) / (m + 1.0);
    let square = s * s;
    let mut series = 0.0;
    for odd in [21.0, 19.0, 17.0, 15.0, 13.0, 11.0, 9.0, 7.0, 5.0, 3.0, 1.0] {
        series = series * square + 1.0 / odd;
    }
    exponent as f64 * std::f64::consts::LN_2 + 2.0 * s * series
}

type Quotient = ([f64; 8], [f64; 8]);

const MIDDLE: Quotient = (
    [
        2_509.080_928_730_122_7,
        33_430.575_583_588_13,
        67_265.770_927_008_7,
        45_921.953_931_549_87,
        13_731.693_765_509_46,
        1_971.590_950_306_551_3,
        133.141_667_891_784_38,
        3.387_132_872_796_366_5,
    ],
    [
        5_226.495_278_852_546,
        28_729.085_735_721_943,
        39_307.895_800_092_71,
        21_213.794_301_586_597,
        5_394.196_021_424_751,
        687.187_007_492_057_9,
        42.313_330_701_600_91,
        1.0,
    ],
);
const NEAR: Quotient = (
    [
        7.745_450_142_783_414e-4,
        0.022_723_844_989_269_184,
        0.241_780_725_177_450_6,
        1.270_458_252_452_368_4,
        3.647_848_324_763_204_5,
        5.769_497_221_460_691,
        4.630_337_846_156_546,
        1.423_437_110_749_683_5,
    ],
    [
        1.050_750_071_644_416_9e-9,
        5.475_938_084_995_345e-4,
        0.015_198_666_563_616_457,
        0.148_103_976_427_480_08,
        0.689_767_334_985_1,
        1.676_384_830_183_803_8,
        2.053_191_626_637_759,
        1.0,
    ],
);
const FAR: Quotient = (
    [
        2.010_334_399_292_288_1e-7,
        2.711_555_568_743_487_6e-5,
        0.001_242_660_947_388_078_4,
        0.026_532_189_526_576_124,
        0.296_560_571_828_504_87,
        1.784_826_539_917_291_3,
        5.463_784_911_164_114,
        6.657_904_643_501_103,
    ],
    [
        2.044_263_103_389_939_8e-15,
        1.421_511_758_316_446e-7,
        1.846_318_317_510_054_7e-5,
        7.868_691_311_456_133e-4,
        0.014_875_361_290_850_615,
        0.136_929_880_922_735_8,
        0.599_832_206_555_888,
        1.0,
    ],
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_quantiles() {
        // Tables of the normal distribution.
        for (p, z) in [
            (0.5, 0.0),
            (0.975, 1.959_963_984_540_054),
            (0.1, -1.281_551_565_544_600_4),
            (0.001, -3.090_232_306_167_813_5),
            (1e-10, -6.361_340_902_404_056),
            (1e-15, -7.941_345_326_170_998),
        ] {
            assert!((quantile(p) - z).abs() < 1e-13, "{p}");
        }
    }

    #[test]
    fn it_rises() {
        let points = (0..200_000).map(|i| (f64::from(i) + 0.5) / 200_000.0);
        let quantiles: Vec<f64> = points.map(quantile).collect();
        assert!(quantiles.windows(2).all(|pair| pair[0] < pair[1]));
    }

    #[test]
    fn logarithms_of_this_machine_agree() {
        for i in 1..10_000 {
            let x = f64::from(i) / 10_001.0;
            assert!(
                (ln(x) - x.ln()).abs() <= 4e-16 * (1.0 + x.ln().abs()),
                "{x}"
            );
        }
    }
}
