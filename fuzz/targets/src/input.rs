//! Takes an input apart into the arguments of a decoder.

/// Bytes that are yet to be given out. What is missing is zero or empty.
pub(crate) struct Input<'a>(pub(crate) &'a [u8]);

impl<'a> Input<'a> {
    pub(crate) fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        *first
    }

    pub(crate) fn number(&mut self) -> u64 {
        let mut bytes = [0; 8];
        bytes.iter_mut().for_each(|byte| *byte = self.byte());
        u64::from_le_bytes(bytes)
    }

    /// A piece that its length leads, two bytes, little endian.
    pub(crate) fn piece(&mut self) -> &'a [u8] {
        let length = usize::from(u16::from_le_bytes([self.byte(), self.byte()]));
        let (piece, rest) = self.0.split_at(length.min(self.0.len()));
        self.0 = rest;
        piece
    }

    /// All pieces up to the end, at most `most`.
    pub(crate) fn pieces(&mut self, most: usize) -> Vec<&'a [u8]> {
        let mut pieces = Vec::new();
        while !self.0.is_empty() && pieces.len() < most {
            pieces.push(self.piece());
        }
        pieces
    }
}

/// Appends a piece as [`Input::piece`] reads it.
pub(crate) fn put(out: &mut Vec<u8>, piece: &[u8]) {
    let length = u16::try_from(piece.len()).expect("seeds are small");
    out.extend(length.to_le_bytes());
    out.extend(piece);
}

/// Some leading bytes, then pieces.
pub(crate) fn joined(head: &[u8], pieces: &[&[u8]]) -> Vec<u8> {
    let mut out = head.to_vec();
    pieces.iter().for_each(|piece| put(&mut out, piece));
    out
}
