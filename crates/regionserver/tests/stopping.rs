//! A region server that is stopped while the master orders it to close and open regions.

use crate::world::{SECOND, World, run};
use cell::region::RegionInfo;
use fs::faulty::Operation;
use regionserver::Admin;
use wire::service::AdminService;

fn close_order(info: &RegionInfo, id: i64) -> proto::ExecuteProceduresRequest {
    let close = proto::CloseRegionRequest {
        region: proto::RegionSpecifier { r#type: 1, value: info.name() },
        close_proc_id: Some(id),
        grampus_region_info: Some(info.into()),
        ..Default::default()
    };
    proto::ExecuteProceduresRequest { close_region: vec![close], ..Default::default() }
}

fn open_order(info: &RegionInfo, id: i64) -> proto::ExecuteProceduresRequest {
    let open = proto::open_region_request::RegionOpenInfo {
        region: info.into(),
        open_proc_id: Some(id),
        ..Default::default()
    };
    let open = proto::OpenRegionRequest { open_info: vec![open], ..Default::default() };
    proto::ExecuteProceduresRequest { open_region: vec![open], ..Default::default() }
}

#[test]
fn a_region_that_the_stop_closes_is_not_opened_again() {
    run(async {
        let world = World::begin().await;
        world.put("a").await;
        let info = world.served().info().clone();
        // The flush of the stop is slow.
        world.delay(Operation::Create, SECOND);
        let admin = Admin(world.server.clone());
        let reopen = async {
            world.env.clock.sleep(SECOND / 10).await;
            admin.execute_procedures(close_order(&info, 1)).await.unwrap();
            world.env.clock.sleep(SECOND / 10).await;
            admin.execute_procedures(open_order(&info, 2)).await.unwrap();
        };
        let (stopped, ()) = tokio::join!(world.server.stop(), reopen);
        stopped.unwrap();
        world.env.clock.sleep(60 * SECOND).await;
        assert!(world.server.regions().is_empty(), "a region that is open has edits that no file has");
    });
}
