//! The text of key files.

use louver_trusted::fuzz;

pub(crate) fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if let Some(root) = fuzz::read_key_file(text) {
        let again = fuzz::write_key_file(&root, "a comment\nof two lines");
        assert_eq!(fuzz::read_key_file(&again), Some(root));
    }
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let whole = fuzz::write_key_file(&[7; 32], "for tests");
    let line = whole.lines().last().unwrap_or_default().to_owned();
    let lower = line.to_lowercase();
    [whole, line, lower].map(String::into_bytes).into()
}
