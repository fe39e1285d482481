//! Many elections in memory, with masters that resign, are killed, restart, and lose their
//! connections and sessions. Each depends only on its seed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base::env::{Env, TaskClass};
use cell::region::ServerName;
use tokio::task::JoinHandle;
use zk::{Coordinator, Election, MemoryCoordinator, MemoryEnsemble, Names, SessionState, payload};

use crate::unreliable::Unreliable;

const SEEDS: u64 = 200;
const MASTERS: u16 = 3;
const EVENTS: u64 = 60;
/// How long the session of a killed process exists: longer than a restart takes.
const SESSION_TIMEOUT: Duration = Duration::from_secs(40);

struct Cluster {
    env: Env,
    seed: u64,
    ensemble: Arc<MemoryEnsemble>,
    /// The running processes, by port.
    running: Mutex<BTreeMap<u16, Process>>,
    /// The tasks of all processes.
    tasks: Mutex<Vec<JoinHandle<()>>>,
    /// How often the masters won, by port.
    terms: Mutex<BTreeMap<u16, u64>>,
}

#[derive(Clone)]
struct Process {
    server: ServerName,
    session: Arc<MemoryCoordinator>,
    is_active: bool,
}

impl Cluster {
    fn new(seed: u64) -> Arc<Cluster> {
        let env = base::testing::env(seed);
        let ensemble = MemoryEnsemble::new(&env);
        let (running, tasks, terms) = (Mutex::default(), Mutex::default(), Mutex::default());
        Arc::new(Cluster { env, seed, ensemble, running, tasks, terms })
    }

    fn below(&self, limit: u64) -> u64 {
        self.env.random.next_u64() % limit
    }

    async fn sleep_up_to(&self, ms: u64) {
        self.env.clock.sleep(Duration::from_millis(self.below(ms + 1))).await;
    }

    /// A process: takes part in elections until its session expires, or it is killed.
    async fn run(self: Arc<Cluster>, process: Process) {
        let tree = Unreliable::new(Arc::clone(&process.session), &self.env);
        let server = process.server.clone();
        let election = Election::new(tree, &self.env, Names::default(), server.clone(), 0);
        while election.win().await.is_ok() {
            if !self.begin_term(&process) {
                return;
            }
            let term = Duration::from_millis(self.below(3000));
            let lost = self.env.timeout(term, election.lost()).await.is_some();
            if lost {
                self.check_lost(&process).await;
            }
            self.end_term(&server);
            if self.below(2) == 0 {
                election.resign().await;
                self.sleep_up_to(200).await;
            }
        }
        assert_eq!(*process.session.session().borrow(), SessionState::Expired);
    }

    /// Checks that no other master is active. Returns false if the process is killed.
    fn begin_term(&self, process: &Process) -> bool {
        let mut running = self.running.lock().unwrap();
        for other in running.values().filter(|other| other.is_active && other.server != process.server) {
            let state = *other.session.session().borrow();
            assert_eq!(state, SessionState::Expired, "seed {}: {} is active", self.seed, other.server);
        }
        *self.terms.lock().unwrap().entry(process.server.port).or_default() += 1;
        match running.get_mut(&process.server.port) {
            Some(own) if own.server == process.server => {
                own.is_active = true;
                true
            }
            _ => false,
        }
    }

    fn end_term(&self, server: &ServerName) {
        let mut running = self.running.lock().unwrap();
        let own = running.get_mut(&server.port).filter(|own| own.server == *server);
        own.into_iter().for_each(|own| own.is_active = false);
    }

    /// Checks that a master that lost had a reason.
    async fn check_lost(&self, process: &Process) {
        let observer = self.ensemble.connect();
        let holder = observer.get(&Names::default().master()).await.ok();
        let holder = holder.and_then(|znode| payload::read_master(&znode.data).ok());
        let expired = *process.session.session().borrow() == SessionState::Expired;
        assert!(expired || holder.as_ref() != Some(&process.server), "seed {}", self.seed);
    }

    /// Starts a process on a port, and kills the one that runs there.
    fn restart(self: &Arc<Cluster>, port: u16) {
        let server = ServerName { host: "host".into(), port, start_code: self.env.random.next_u64() >> 1 };
        let process = Process { server, session: self.ensemble.connect(), is_active: false };
        let killed = self.running.lock().unwrap().insert(port, process.clone());
        // Its session continues, but it does nothing more: its task ends at its next step, and it
        // cannot do harm, because its operations fail.
        if let Some(killed) = killed {
            killed.session.suspend();
            let clock = self.env.clock.clone();
            self.env.spawn(TaskClass::Service, async move {
                clock.sleep(SESSION_TIMEOUT).await;
                killed.session.expire_session();
            });
        }
        let task = self.env.spawn(TaskClass::Service, Arc::clone(self).run(process));
        self.tasks.lock().unwrap().push(task);
    }

    fn disturb(self: &Arc<Cluster>) {
        let port = 16000 + self.below(MASTERS.into()) as u16;
        let session = Arc::clone(&self.running.lock().unwrap()[&port].session);
        let expired = *session.session().borrow() == SessionState::Expired;
        match self.below(8) {
            0..=1 => session.suspend(),
            2..=4 => session.resume(),
            5 => session.expire_session(),
            _ => self.restart(port),
        }
        if expired {
            self.restart(port);
        }
    }

    /// Checks that each master is active at some time if nothing disturbs them.
    async fn check_recovery(self: &Arc<Cluster>) {
        for port in 16000..16000 + MASTERS {
            let session = Arc::clone(&self.running.lock().unwrap()[&port].session);
            session.resume();
            if *session.session().borrow() == SessionState::Expired {
                self.restart(port);
            }
        }
        let before = self.terms.lock().unwrap().clone();
        self.env.clock.sleep(SESSION_TIMEOUT * 2).await;
        let after = self.terms.lock().unwrap().clone();
        let is_active_again = |port: &u16| after.get(port) > before.get(port);
        let ports: Vec<u16> = (16000..16000 + MASTERS).filter(is_active_again).collect();
        assert_eq!(ports.len(), usize::from(MASTERS), "seed {}: only {ports:?} won", self.seed);
    }

    /// Ends all processes, also those that were killed, and checks that no check failed.
    async fn end(&self) {
        self.running.lock().unwrap().values().for_each(|process| process.session.expire_session());
        let tasks = std::mem::take(&mut *self.tasks.lock().unwrap());
        for task in tasks {
            task.await.unwrap();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn two_masters_are_never_active() {
    let mut terms = 0;
    for seed in 0..SEEDS {
        let cluster = Cluster::new(seed);
        (16000..16000 + MASTERS).for_each(|port| cluster.restart(port));
        for _ in 0..EVENTS {
            cluster.sleep_up_to(1000).await;
            cluster.disturb();
        }
        cluster.check_recovery().await;
        terms += cluster.terms.lock().unwrap().values().sum::<u64>();
        cluster.end().await;
    }
    assert!(terms > SEEDS * 20, "only {terms} terms");
}
