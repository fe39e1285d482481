use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::*;

const MILLI: Duration = Duration::from_millis(1);

/// Sets a flag when it is dropped.
struct Dropped(Arc<AtomicBool>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs `main` in a new world.
fn run<F, T>(seed: u64, main: impl FnOnce(Arc<Scheduler>) -> F) -> T
where
    F: Future<Output = T> + Send + 'static,
    T: Send + 'static,
{
    let scheduler = Scheduler::new(seed);
    let result = scheduler.run(main(scheduler.clone()));
    scheduler.shut_down();
    result
}

/// The order in which ten tasks that are ready at the same time run.
fn order(seed: u64) -> Vec<usize> {
    run(seed, |scheduler| async move {
        let order = Arc::new(Mutex::new(Vec::new()));
        let mut handles = Vec::new();
        for n in 0..10 {
            let order = order.clone();
            handles.push(scheduler.spawn(Owner::WORLD, async move { order.lock().unwrap().push(n) }));
        }
        for handle in handles {
            handle.await.unwrap();
        }
        std::mem::take(&mut *order.lock().unwrap())
    })
}

#[test]
fn the_seed_determines_the_order_of_tasks() {
    assert_eq!(order(1), order(1));
    assert!((2..10).any(|seed| order(seed) != order(1)));
}

#[test]
fn time_passes_when_all_tasks_wait() {
    let (slept, timer_order) = run(1, |scheduler| async move {
        let order = Arc::new(Mutex::new(Vec::new()));
        for n in [3, 1, 2] {
            let order = order.clone();
            scheduler.after(n * 1000 * MILLI, move || order.lock().unwrap().push(n));
        }
        let begun = scheduler.now();
        scheduler.sleep(Duration::from_secs(3600)).await;
        let order = order.lock().unwrap().clone();
        (scheduler.now() - begun, order)
    });
    assert!((3_600_000..3_600_001).contains(&slept.as_millis()), "{slept:?}");
    assert_eq!(timer_order, [1, 2, 3]);
}

#[test]
fn a_yielding_task_does_not_stop_the_time() {
    run(1, |scheduler| async move {
        let until = scheduler.now() + MILLI;
        while scheduler.now() < until {
            tokio::task::yield_now().await;
        }
    });
}

#[test]
fn a_paused_owner_runs_no_task_and_catches_up_later() {
    run(1, |scheduler| async move {
        let owner = scheduler.add_owner("a");
        let ticks = Arc::new(AtomicU64::new(0));
        let (clock, counter) = (scheduler.clone(), ticks.clone());
        scheduler.spawn(owner, async move {
            loop {
                clock.sleep(MILLI).await;
                counter.fetch_add(1, Ordering::Relaxed);
            }
        });
        scheduler.sleep(20 * MILLI).await;
        scheduler.pause(owner);
        let before = ticks.load(Ordering::Relaxed);
        assert!((8..=20).contains(&before), "{before}");
        scheduler.sleep(100 * MILLI).await;
        assert_eq!(ticks.load(Ordering::Relaxed), before);
        scheduler.resume(owner);
        scheduler.sleep(20 * MILLI).await;
        let after = ticks.load(Ordering::Relaxed) - before;
        assert!((8..=20).contains(&after), "{after}");
    });
}

#[test]
fn a_killed_owner_loses_its_tasks_immediately() {
    run(1, |scheduler| async move {
        let owner = scheduler.add_owner("a");
        let dropped = Arc::new(AtomicBool::new(false));
        let guard = Dropped(dropped.clone());
        scheduler.spawn(owner, async move {
            let _guard = guard;
            std::future::pending::<()>().await;
        });
        scheduler.sleep(MILLI).await;
        assert!(!dropped.load(Ordering::Relaxed));
        scheduler.kill(owner);
        assert!(dropped.load(Ordering::Relaxed) && !scheduler.is_alive(owner));
        scheduler.spawn(owner, async { panic!("a killed owner runs no task") });
        scheduler.sleep(MILLI).await;
    });
}

#[test]
fn a_task_that_kills_its_owner_ends_with_its_poll() {
    run(1, |scheduler| async move {
        let owner = scheduler.add_owner("a");
        let dropped = Arc::new(AtomicBool::new(false));
        let (guard, killer) = (Dropped(dropped.clone()), scheduler.clone());
        scheduler.spawn(owner, async move {
            let _guard = guard;
            killer.kill(owner);
            tokio::task::yield_now().await;
            panic!("it continued");
        });
        scheduler.sleep(MILLI).await;
        assert!(dropped.load(Ordering::Relaxed));
    });
}

#[test]
fn aborting_a_handle_drops_the_task() {
    run(1, |scheduler| async move {
        let dropped = Arc::new(AtomicBool::new(false));
        let guard = Dropped(dropped.clone());
        let handle = scheduler.spawn(Owner::WORLD, async move {
            let _guard = guard;
            std::future::pending::<()>().await;
        });
        scheduler.sleep(MILLI).await;
        handle.abort();
        scheduler.sleep(MILLI).await;
        assert!(dropped.load(Ordering::Relaxed));
        assert!(handle.await.unwrap_err().is_cancelled());
    });
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_deadlock_is_reported() {
    run(1, |_| std::future::pending::<()>());
}
