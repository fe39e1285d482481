//! The threads of this process, on which its tasks run.

use base::env::{MakeTask, Spawner, TaskClass};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

/// Runs all classes of tasks on the threads of one runtime: this process stores no rows, and its
/// tasks mostly wait.
pub struct Threads(pub Handle);

impl Spawner for Threads {
    fn spawn_with(&self, _: TaskClass, make: MakeTask) -> JoinHandle<()> {
        self.0.spawn(async move { make().await })
    }
}
