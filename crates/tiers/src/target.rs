//! Where a link points: the volume, and the name of the file on it.
//!
//! The text of a link is `DIRECTORY/VOLUME/NAME`: an absolute path, so that other programs can
//! follow it. Only the last two parts identify the file. If a disk is mounted elsewhere, its files
//! are found by them.

use fs::FilePath;

/// A file on a volume.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Target {
    /// The volume's id, which is also the name of the directory of its files.
    pub(crate) volume: String,
    /// The name of the file in that directory.
    pub(crate) name: String,
}

impl Target {
    /// A target for a new file `path`. The number makes it unique.
    pub(crate) fn unique(volume: &str, path: &FilePath, number: u64) -> Target {
        Target { volume: volume.to_owned(), name: format!("{}.{number:016x}", path.name()) }
    }

    /// Parses the text of a link; `None` if another program made it.
    pub(crate) fn parse(link: &str) -> Option<Target> {
        let (rest, name) = link.rsplit_once('/')?;
        let (_, volume) = rest.rsplit_once('/')?;
        let is_ours = volume.starts_with(VOLUME_PREFIX) && !name.is_empty();
        is_ours.then(|| Target { volume: volume.to_owned(), name: name.to_owned() })
    }

    /// The text of a link to this target, if the volume's directory is `directory`.
    pub(crate) fn link(&self, directory: &str) -> String {
        format!("{directory}/{}/{}", self.volume, self.name)
    }

    /// The path on the volume.
    pub(crate) fn path(&self) -> FilePath {
        FilePath::new(&self.volume).join(&self.name)
    }
}

/// All ids of volumes start with this, so that other links are recognised as such.
pub(crate) const VOLUME_PREFIX: &str = "grampus-volume-";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_parsed_wherever_the_volume_is_mounted() {
        let target = Target::unique("grampus-volume-7", &FilePath::new("data/t/r/f/abc"), 255);
        assert_eq!(target.name, "abc.00000000000000ff");
        for directory in ["/mnt/a", "/elsewhere/deep", ""] {
            assert_eq!(Target::parse(&target.link(directory)), Some(target.clone()));
        }
        for foreign in ["", "/", "abc", "/mnt/other/abc", "/grampus-volume-7/"] {
            assert_eq!(Target::parse(foreign), None, "{foreign}");
        }
    }
}
