//! Shares of functions, as clients send them to providers: every construction.

use louver_primitives::fss::{LessShare, PointShare};
use louver_primitives::fss_many::{read_reply, OwfShare, PaillierShare};
use louver_trusted::fss::{Below, Point, PointSum, Sum};
use louver_trusted::fss_many::OwfPoint;

pub(crate) fn run(data: &[u8]) {
    if let Ok(share) = PointShare::decode(data) {
        assert_eq!(share.encode(), data);
    }
    if let Ok(share) = LessShare::decode(data) {
        assert_eq!(share.encode(), data);
    }
    if let Ok(share) = OwfShare::decode(data) {
        assert_eq!(share.encode(), data);
    }
    if let Ok(share) = PaillierShare::decode(data) {
        assert_eq!(share.encode(), data);
    }
    let _ = read_reply(data, 256);
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    seeds.extend_from_slice(Point::new(8, Some(5)).expect("a point").shares());
    seeds.extend_from_slice(PointSum::new(9, Some(5)).expect("a point").shares());
    seeds.extend_from_slice(Sum::new(6, Some((3, 9))).expect("an interval").shares());
    seeds.extend_from_slice(Below::new(7, 100).expect("an end").shares());
    seeds.extend_from_slice(OwfPoint::new(4, Some(3), 3).expect("a point").shares());
    seeds
}
