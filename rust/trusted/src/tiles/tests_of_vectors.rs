//! The known answers of `spec/vectors/tile.json`.

use super::seal::plaintexts;
use super::{TileColumn, TileForm, TILE_ROWS};
use crate::keys::{hex, RootSecret};
use crate::{Epochs, KeyRing};
use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::types::*;
use arrow_array::*;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::sync::Arc;

const VECTORS: &str = include_str!("../../../../spec/vectors/tile.json");

fn unhex(text: &str) -> Vec<u8> {
    let pairs = text.as_bytes().chunks(2);
    let byte = |pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    pairs.map(byte).collect()
}

fn number(value: &Value) -> u32 {
    u32::try_from(value.as_u64().unwrap()).unwrap()
}

fn form(tile: &Value) -> TileForm {
    let packed = &tile["packed"];
    if packed.is_null() {
        return TileForm::Units {
            unit: number(&tile["units"]["unit"]),
            limit: number(&tile["units"]["limit"]),
        };
    }
    TileForm::Packed {
        base: packed["base"].as_str().unwrap().parse().unwrap(),
        bits: number(&packed["bits"]),
        nulls: packed["nulls"].as_bool().unwrap(),
    }
}

fn numbers<T: ArrowPrimitiveType>(texts: &[Option<&str>]) -> ArrayRef
where
    T::Native: std::str::FromStr<Err: std::fmt::Debug>,
{
    let read = |text: &Option<&str>| text.map(|text| text.parse().unwrap());
    Arc::new(PrimitiveArray::<T>::from_iter(texts.iter().map(read)))
}

fn values(tile: &Value) -> ArrayRef {
    let texts: Vec<Option<&str>> = tile["values"]
        .as_array()
        .unwrap()
        .iter()
        .map(Value::as_str)
        .collect();
    let bytes: Vec<Option<Vec<u8>>> = match tile["units"].is_null() {
        true => Vec::new(),
        false => texts.iter().map(|text| text.map(unhex)).collect(),
    };
    match tile["type"].as_str().unwrap() {
        "int64" => numbers::<Int64Type>(&texts),
        "int32" => numbers::<Int32Type>(&texts),
        "int16" => numbers::<Int16Type>(&texts),
        "uint64" => numbers::<UInt64Type>(&texts),
        "date32" => numbers::<Date32Type>(&texts),
        "decimal128" => numbers::<Decimal128Type>(&texts),
        "bool" => Arc::new(BooleanArray::from_iter(
            texts.iter().map(|text| text.map(|t| t == "1")),
        )),
        "utf8" => {
            let text =
                |bytes: &Option<Vec<u8>>| bytes.clone().map(|b| String::from_utf8(b).unwrap());
            Arc::new(StringArray::from_iter(bytes.iter().map(text)))
        }
        "binary" => Arc::new(BinaryArray::from_iter(bytes)),
        "float64" => {
            let float =
                |bytes: Option<Vec<u8>>| bytes.map(|b| f64::from_le_bytes(b.try_into().unwrap()));
            Arc::new(Float64Array::from_iter(bytes.into_iter().map(float)))
        }
        "list<utf8>" => {
            let mut lists = ListBuilder::new(StringBuilder::new());
            lists.append_value([Some("hi")]);
            lists.append_null();
            lists.append_value([None::<&str>]);
            Arc::new(lists.finish())
        }
        other => panic!("{other}"),
    }
}

#[test]
fn tiles_as_specified() {
    let vectors: Value = serde_json::from_str(VECTORS).unwrap();
    let root = RootSecret::from_bytes(&unhex(vectors["root"].as_str().unwrap())).unwrap();
    let ring = KeyRing::from_root(root);
    let bits = vectors["epochs"]["bits"].as_object().unwrap().iter();
    let bits = bits.map(|(number, bits)| {
        let bits = unhex(bits.as_str().unwrap());
        (number.parse().unwrap(), bits.try_into().unwrap())
    });
    let epochs = Epochs::new(number(&vectors["epochs"]["legacy_below"]), bits.collect()).unwrap();
    let id = ["table", "column", "generation"].map(|name| number(&vectors[name]));
    for tile in vectors["tiles"].as_array().unwrap() {
        let column = TileColumn {
            id: id.into(),
            epochs: &epochs,
            form: form(tile),
        };
        let values = values(tile);
        let sealed = BinaryArray::from_iter_values([unhex(tile["sealed"].as_str().unwrap())]);
        let first = Int64Array::from(vec![tile["first"].as_i64().unwrap()]);
        let opened = ring.open_tiles(&column, &sealed, &first, values.data_type(), None);
        let (array, rows) = opened.unwrap();
        assert_eq!((&array, rows), (&values, vec![values.len() as u16]));
        if !tile["packed"].is_null() {
            let plain = plaintexts(column.form, &values, TILE_ROWS).unwrap();
            let hash = hex(&Sha256::digest(&plain[0]));
            assert_eq!(hash, tile["plain_sha256"].as_str().unwrap());
        }
    }
}
