//! GHASH by wide instructions, where the processor has them.

#[cfg(target_arch = "x86_64")]
mod wide;
#[cfg(target_arch = "x86_64")]
pub use wide::WideGhash;

/// The powers of a key, for processors with wide instructions: there is none of this kind.
#[cfg(not(target_arch = "x86_64"))]
pub enum WideGhash {}

#[cfg(not(target_arch = "x86_64"))]
impl zeroize::ZeroizeOnDrop for WideGhash {}

#[cfg(not(target_arch = "x86_64"))]
impl WideGhash {
    /// None: the processor lacks the instructions.
    pub fn new(_h: &[u8; 16]) -> Option<Self> {
        None
    }

    /// Goes on from the state `y` with a message, filled with zeros to whole blocks.
    pub fn update(&self, _y: &mut [u8; 16], _message: &[u8]) {
        match *self {}
    }
}
