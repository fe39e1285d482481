//! Root directories in archives, for the tests of several crates.
//!
//! `snapshots` has snapshots of both layouts (`compat/snapshots/run`).

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use fs::memory::MemoryFs;
use fs::{FilePath, FileSystem};

/// All files and directories, by path; `None` for a directory.
pub type Tree = BTreeMap<String, Option<Vec<u8>>>;

/// A file of the vectors.
pub fn vector(name: &str) -> Vec<u8> {
    // From another crate, and from `sql`.
    let places = ["../adoption/tests/vectors", "../crates/adoption/tests/vectors"];
    let mut vectors = places.map(|place| Path::new(env!("CARGO_MANIFEST_DIR")).join(place)).into_iter();
    std::fs::read(vectors.find(|vectors| vectors.exists()).unwrap().join(name)).unwrap()
}

/// The files of an archive, written to memory.
pub async fn image(name: &str) -> MemoryFs {
    let fs = MemoryFs::new();
    fill(&fs, &unpack(name)).await;
    fs
}

pub async fn fill(fs: &MemoryFs, tree: &Tree) {
    for (path, content) in tree {
        match content {
            Some(content) => fs.put(&FilePath::new(path), content.clone()),
            None => fs.make_dirs(&FilePath::new(path)).await.unwrap(),
        }
    }
}

/// The entries of a tar archive, below its only top directory.
pub fn unpack(name: &str) -> Tree {
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(&*vector(&format!("{name}.tar.gz"))).read_to_end(&mut bytes).unwrap();
    let text =
        |bytes: &[u8]| String::from_utf8(bytes.split(|byte| *byte == 0).next().unwrap().to_vec()).unwrap();
    let (mut tree, mut at, mut long_name) = (Tree::new(), 0, None);
    while bytes[at] != 0 {
        let header = &bytes[at..at + 512];
        let len = usize::from_str_radix(text(&header[124..136]).trim(), 8).unwrap();
        let content = &bytes[at + 512..at + 512 + len];
        at += 512 + len.next_multiple_of(512);
        match header[156] {
            b'L' => long_name = Some(text(content)),
            b'x' => {
                let records = String::from_utf8(content.to_vec()).unwrap();
                let path = records
                    .lines()
                    .find_map(|line| line.split_once(" path=").map(|(_, path)| path.to_string()));
                long_name = path.or(long_name);
            }
            kind => {
                let prefix =
                    if &header[257..263] == b"ustar\0" { text(&header[345..500]) } else { String::new() };
                let short = if prefix.is_empty() {
                    text(&header[..100])
                } else {
                    format!("{prefix}/{}", text(&header[..100]))
                };
                let path = long_name.take().unwrap_or(short);
                let path =
                    path.trim_end_matches('/').split_once('/').map_or("", |(_, path)| path).to_string();
                if !path.is_empty() {
                    tree.insert(path, (kind != b'5').then(|| content.to_vec()));
                }
            }
        }
    }
    assert!(tree.len() > 100, "the archive was read");
    tree
}
