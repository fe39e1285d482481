//! The fake's column endpoint: counts rows and returns their keys, with limited response sizes.

use bytes::Bytes;
use prost::Message;
use proto::exception::{Answer, JavaException, class};
use proto::grampus::{
    AggregateRequest, AggregateResponse, Group, Rows, SelectRequest, SelectResponse, State as Found, Vector,
    Work,
};
use proto::{CoprocessorServiceRequest, CoprocessorServiceResponse, NameBytesPair};
use rpc::Reply;

use super::fake::{Node, reply};

impl Node {
    /// Handles an `ExecService` call.
    pub(super) fn endpoint(&self, request: CoprocessorServiceRequest) -> Answer<Reply> {
        let mut state = self.state.lock().unwrap();
        let call = request.call;
        assert_eq!(call.service_name, "grampus.pb.ColumnService");
        state.count("ExecService");
        let region = state.region(&request.region, self.at)?;
        state.fault("ExecService")?;
        if let Some(key) = state.split_at_endpoint.take_if(|key| region.contains(key)) {
            state.split(&region, key);
            return Err(JavaException::new(class::NOT_SERVING_REGION, "it was split"));
        }
        let found = |rows: Option<Rows>, limit: usize| {
            let rows = rows.unwrap();
            let (start, stop) = (rows.start_row.unwrap(), rows.stop_row.unwrap());
            assert!(region.contains(&start), "{start:?} is not of {region:?}");
            let end = &region.end_key;
            assert!(end.is_empty() || (!stop.is_empty() && stop <= *end), "{stop:?} is beyond {region:?}");
            let in_range = |row: &&Bytes| **row >= start && (stop.is_empty() || **row < stop);
            let mut keys: Vec<Bytes> = state
                .rows
                .keys()
                .filter(in_range)
                .take(limit.min(state.endpoint_rows_max) + 1)
                .cloned()
                .collect();
            let resume_row = (keys.len() > state.endpoint_rows_max).then(|| keys.pop().unwrap());
            keys.truncate(limit);
            (keys, resume_row)
        };
        let value = match &call.method_name[..] {
            "Aggregate" => {
                let request = AggregateRequest::decode(call.request).unwrap();
                let (keys, resume_row) = found(request.rows, usize::MAX - 1);
                let count = Some(keys.len() as u64);
                let state = vec![Found { count, ..Default::default() }; request.aggregate.len()];
                let group = vec![Group { key: Vec::new(), state }];
                let work = Some(Work { rows: count, ..Default::default() });
                AggregateResponse { group, resume_row, work }.encode_to_vec()
            }
            _ => {
                let request = SelectRequest::decode(call.request).unwrap();
                let limit = request.limit.map_or(usize::MAX - 1, |limit| limit as usize);
                let (keys, resume_row) = found(request.rows, limit);
                let rows = Some(keys.len() as u64);
                let vector = vec![Vector { raw: keys, ..Default::default() }];
                SelectResponse { rows, vector, resume_row, work: None }.encode_to_vec()
            }
        };
        let value = NameBytesPair { name: "an answer".into(), value: Some(value.into()) };
        Ok(reply(CoprocessorServiceResponse { region: request.region, value }, Bytes::new()))
    }
}
