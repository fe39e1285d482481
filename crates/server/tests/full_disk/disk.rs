//! A small file system of its own for one server: on tmpfs, or ext4 on a loop device.
#![allow(clippy::disallowed_methods, reason = "file systems are made by the machine's own tools")]

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What kind of file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Tmpfs,
    Ext4,
}

/// A mounted file system; unmounted and removed when dropped.
pub struct Disk {
    dir: PathBuf,
    mounted: PathBuf,
}

impl Disk {
    /// Mounts one of `mib` MiB; the reason if this process may not.
    pub fn mount(name: &str, kind: Kind, mib: u64) -> Result<Disk, String> {
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("disk-{name}-{kind:?}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        let mounted = dir.join("mounted");
        fs::create_dir_all(&mounted).map_err(|error| error.to_string())?;
        let disk = Disk { dir, mounted };
        let at = disk.mounted.to_str().expect("a path in UTF-8");
        match kind {
            Kind::Tmpfs => run("mount", &["-t", "tmpfs", "-o", &format!("size={mib}m"), "tmpfs", at])?,
            Kind::Ext4 => {
                let image = disk.dir.join("image");
                let file = File::create(&image).map_err(|error| error.to_string())?;
                file.set_len(mib << 20).map_err(|error| error.to_string())?;
                let image = image.to_str().expect("a path in UTF-8");
                run("mkfs.ext4", &["-q", "-m", "0", image])?;
                run("mount", &["-o", "loop", image, at])?;
            }
        }
        Ok(disk)
    }

    /// A path on it.
    pub fn join(&self, name: &str) -> PathBuf {
        self.mounted.join(name)
    }

    /// A path beside it.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Bytes that are free.
    pub fn free(&self) -> u64 {
        let found = rustix::fs::statvfs(&self.mounted).expect("a mounted file system");
        found.f_bavail * found.f_frsize
    }

    /// Lets another program take room until `left` bytes are free: all of it for 0.
    pub fn fill(&self, left: u64) {
        let mut file =
            File::options().create(true).append(true).open(self.ballast()).expect("a file can be made");
        let block = vec![1; 64 << 10];
        loop {
            let free = self.free();
            let len =
                if left == 0 { block.len() } else { (free.saturating_sub(left) as usize).min(block.len()) };
            if len == 0 || (left > 0 && free <= left) {
                break;
            }
            // To the last block, in steps that a full disk refuses.
            if file.write_all(&block[..len]).is_err() {
                if left == 0 {
                    while file.write_all(&block[..512]).is_ok() {}
                }
                break;
            }
        }
        let _ = file.sync_all();
    }

    /// Gives that room back.
    pub fn free_all(&self) {
        let _ = fs::remove_file(self.ballast());
    }

    fn ballast(&self) -> PathBuf {
        self.join("ballast")
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = run("umount", &["-l", self.mounted.to_str().expect("a path in UTF-8")]);
        let _ = fs::remove_dir_all(&self.dir);
    }
}

fn run(program: &str, arguments: &[&str]) -> Result<(), String> {
    let output = Command::new(program).args(arguments).output();
    let output = output.map_err(|error| format!("{program}: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("{program}: {}", String::from_utf8_lossy(&output.stderr).trim())),
    }
}
