//! A small file system for one server: tmpfs, or ext4 on a loop device.
#![allow(clippy::disallowed_methods, reason = "file systems are created with system tools")]

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The type of the file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Tmpfs,
    Ext4,
}

/// A mounted file system, which is unmounted and removed when dropped.
pub struct Disk {
    dir: PathBuf,
    mounted: PathBuf,
}

impl Disk {
    /// Mounts a file system of `mib` MiB. Returns the reason if this process must not mount.
    pub fn mount(name: &str, kind: Kind, mib: u64) -> Result<Disk, String> {
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("disk-{name}-{kind:?}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        let mounted = dir.join("mounted");
        fs::create_dir_all(&mounted).map_err(|error| error.to_string())?;
        let disk = Disk { dir, mounted };
        let at = disk.mounted.to_str().expect("the path is UTF-8");
        match kind {
            Kind::Tmpfs => run("mount", &["-t", "tmpfs", "-o", &format!("size={mib}m"), "tmpfs", at])?,
            Kind::Ext4 => {
                let image = disk.dir.join("image");
                let file = File::create(&image).map_err(|error| error.to_string())?;
                file.set_len(mib << 20).map_err(|error| error.to_string())?;
                let image = image.to_str().expect("the path is UTF-8");
                run("mkfs.ext4", &["-q", "-m", "0", image])?;
                run("mount", &["-o", "loop", image, at])?;
            }
        }
        Ok(disk)
    }

    /// A path on the file system.
    pub fn join(&self, name: &str) -> PathBuf {
        self.mounted.join(name)
    }

    /// A path next to the mount point, on another file system.
    pub fn outside(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Free bytes.
    pub fn free(&self) -> u64 {
        let found = rustix::fs::statvfs(&self.mounted).expect("a mounted file system");
        found.f_bavail * found.f_frsize
    }

    /// Fills the disk, as another program would, until `left` bytes are free; completely for 0.
    pub fn fill(&self, left: u64) {
        let mut file =
            File::options().create(true).append(true).open(self.ballast()).expect("a file can be created");
        let block = vec![1; 64 << 10];
        loop {
            let free = self.free();
            let len =
                if left == 0 { block.len() } else { (free.saturating_sub(left) as usize).min(block.len()) };
            if len == 0 || (left > 0 && free <= left) {
                break;
            }
            // Fill the last block in small steps until a write fails.
            if file.write_all(&block[..len]).is_err() {
                if left == 0 {
                    while file.write_all(&block[..512]).is_ok() {}
                }
                break;
            }
        }
        let _ = file.sync_all();
    }

    /// Removes the filling.
    pub fn free_all(&self) {
        let _ = fs::remove_file(self.ballast());
    }

    fn ballast(&self) -> PathBuf {
        self.join("ballast")
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = run("umount", &["-l", self.mounted.to_str().expect("the path is UTF-8")]);
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
