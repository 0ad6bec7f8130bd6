//! Known answers, and the scheme end to end with the server's own functions.

mod algebra;
mod space;
mod vectors;
