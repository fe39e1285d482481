#[derive(Clone, PartialEq, ::prost::Message)]
pub struct RpcRequestHeader {
    #[prost(uint32, optional, tag = "1")]
    pub rpc_kind: ::core::option::Option<u32>,
    #[prost(uint32, optional, tag = "2")]
    pub rpc_op: ::core::option::Option<u32>,
    #[prost(sint32, required, tag = "3")]
    pub call_id: i32,
    #[prost(bytes = "bytes", required, tag = "4")]
    pub client_id: ::prost::bytes::Bytes,
    #[prost(sint32, optional, tag = "5")]
    pub retry_count: ::core::option::Option<i32>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct RpcResponseHeader {
    #[prost(uint32, required, tag = "1")]
    pub call_id: u32,
    #[prost(uint32, required, tag = "2")]
    pub status: u32,
    #[prost(uint32, optional, tag = "3")]
    pub server_ipc_version: ::core::option::Option<u32>,
    #[prost(string, optional, tag = "4")]
    pub exception_class: ::core::option::Option<::prost::alloc::string::String>,
    #[prost(string, optional, tag = "5")]
    pub error_message: ::core::option::Option<::prost::alloc::string::String>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct RequestHeader {
    #[prost(string, required, tag = "1")]
    pub method_name: ::prost::alloc::string::String,
    #[prost(string, required, tag = "2")]
    pub declaring_class_protocol_name: ::prost::alloc::string::String,
    #[prost(uint64, required, tag = "3")]
    pub client_protocol_version: u64,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct UserInformation {
    #[prost(string, optional, tag = "1")]
    pub effective_user: ::core::option::Option<::prost::alloc::string::String>,
    #[prost(string, optional, tag = "2")]
    pub real_user: ::core::option::Option<::prost::alloc::string::String>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ConnectionContext {
    #[prost(message, optional, tag = "2")]
    pub user_info: ::core::option::Option<UserInformation>,
    #[prost(string, optional, tag = "3")]
    pub protocol: ::core::option::Option<::prost::alloc::string::String>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ExtendedBlock {
    #[prost(string, required, tag = "1")]
    pub pool_id: ::prost::alloc::string::String,
    #[prost(uint64, required, tag = "2")]
    pub block_id: u64,
    #[prost(uint64, required, tag = "3")]
    pub generation_stamp: u64,
    #[prost(uint64, optional, tag = "4")]
    pub num_bytes: ::core::option::Option<u64>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct DatanodeId {
    #[prost(string, required, tag = "1")]
    pub ip_addr: ::prost::alloc::string::String,
    #[prost(string, required, tag = "2")]
    pub host_name: ::prost::alloc::string::String,
    #[prost(string, required, tag = "3")]
    pub datanode_uuid: ::prost::alloc::string::String,
    #[prost(uint32, required, tag = "4")]
    pub xfer_port: u32,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct DatanodeInfo {
    #[prost(message, required, tag = "1")]
    pub id: DatanodeId,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct LocatedBlock {
    #[prost(message, required, tag = "1")]
    pub b: ExtendedBlock,
    #[prost(uint64, required, tag = "2")]
    pub offset: u64,
    #[prost(bytes = "bytes", repeated, tag = "3")]
    pub locs: ::prost::alloc::vec::Vec<::prost::bytes::Bytes>,
    #[prost(bool, required, tag = "4")]
    pub corrupt: bool,
    #[prost(bytes = "bytes", required, tag = "5")]
    pub block_token: ::prost::bytes::Bytes,
    #[prost(uint32, repeated, packed = "false", tag = "7")]
    pub storage_types: ::prost::alloc::vec::Vec<u32>,
    #[prost(string, repeated, tag = "8")]
    pub storage_ids: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
}
#[derive(Clone, Copy, PartialEq, ::prost::Message)]
pub struct FsPermission {
    #[prost(uint32, required, tag = "1")]
    pub perm: u32,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct FileStatus {
    #[prost(uint32, required, tag = "1")]
    pub file_type: u32,
    #[prost(bytes = "bytes", required, tag = "2")]
    pub path: ::prost::bytes::Bytes,
    #[prost(uint64, required, tag = "3")]
    pub length: u64,
    #[prost(message, required, tag = "4")]
    pub permission: FsPermission,
    #[prost(string, required, tag = "5")]
    pub owner: ::prost::alloc::string::String,
    #[prost(string, required, tag = "6")]
    pub group: ::prost::alloc::string::String,
    #[prost(uint64, required, tag = "7")]
    pub modification_time: u64,
    #[prost(uint64, required, tag = "8")]
    pub access_time: u64,
    #[prost(uint64, optional, tag = "13")]
    pub file_id: ::core::option::Option<u64>,
    #[prost(bytes = "bytes", optional, tag = "15")]
    pub file_encryption_info: ::core::option::Option<::prost::bytes::Bytes>,
    #[prost(bytes = "bytes", optional, tag = "17")]
    pub ec_policy: ::core::option::Option<::prost::bytes::Bytes>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct CreateRequest {
    #[prost(string, required, tag = "1")]
    pub src: ::prost::alloc::string::String,
    #[prost(message, required, tag = "2")]
    pub masked: FsPermission,
    #[prost(string, required, tag = "3")]
    pub client_name: ::prost::alloc::string::String,
    #[prost(uint32, required, tag = "4")]
    pub create_flag: u32,
    #[prost(bool, required, tag = "5")]
    pub create_parent: bool,
    #[prost(uint32, required, tag = "6")]
    pub replication: u32,
    #[prost(uint64, required, tag = "7")]
    pub block_size: u64,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct CreateResponse {
    #[prost(message, optional, tag = "1")]
    pub fs: ::core::option::Option<FileStatus>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct AddBlockRequest {
    #[prost(string, required, tag = "1")]
    pub src: ::prost::alloc::string::String,
    #[prost(string, required, tag = "2")]
    pub client_name: ::prost::alloc::string::String,
    #[prost(message, optional, tag = "3")]
    pub previous: ::core::option::Option<ExtendedBlock>,
    #[prost(bytes = "bytes", repeated, tag = "4")]
    pub exclude_nodes: ::prost::alloc::vec::Vec<::prost::bytes::Bytes>,
    #[prost(uint64, optional, tag = "5")]
    pub file_id: ::core::option::Option<u64>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct AddBlockResponse {
    #[prost(message, required, tag = "1")]
    pub block: LocatedBlock,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct AbandonBlockRequest {
    #[prost(message, required, tag = "1")]
    pub b: ExtendedBlock,
    #[prost(string, required, tag = "2")]
    pub src: ::prost::alloc::string::String,
    #[prost(string, required, tag = "3")]
    pub holder: ::prost::alloc::string::String,
    #[prost(uint64, optional, tag = "4")]
    pub file_id: ::core::option::Option<u64>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct CompleteRequest {
    #[prost(string, required, tag = "1")]
    pub src: ::prost::alloc::string::String,
    #[prost(string, required, tag = "2")]
    pub client_name: ::prost::alloc::string::String,
    #[prost(message, optional, tag = "3")]
    pub last: ::core::option::Option<ExtendedBlock>,
    #[prost(uint64, optional, tag = "4")]
    pub file_id: ::core::option::Option<u64>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct FsyncRequest {
    #[prost(string, required, tag = "1")]
    pub src: ::prost::alloc::string::String,
    #[prost(string, required, tag = "2")]
    pub client: ::prost::alloc::string::String,
    #[prost(sint64, optional, tag = "3")]
    pub last_block_length: ::core::option::Option<i64>,
    #[prost(uint64, optional, tag = "4")]
    pub file_id: ::core::option::Option<u64>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct RenewLeaseRequest {
    #[prost(string, required, tag = "1")]
    pub client_name: ::prost::alloc::string::String,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct RecoverLeaseRequest {
    #[prost(string, required, tag = "1")]
    pub src: ::prost::alloc::string::String,
    #[prost(string, required, tag = "2")]
    pub client_name: ::prost::alloc::string::String,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct PathRequest {
    #[prost(string, required, tag = "1")]
    pub src: ::prost::alloc::string::String,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct FileInfoResponse {
    #[prost(message, optional, tag = "1")]
    pub fs: ::core::option::Option<FileStatus>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ListingRequest {
    #[prost(string, required, tag = "1")]
    pub src: ::prost::alloc::string::String,
    #[prost(bytes = "bytes", required, tag = "2")]
    pub start_after: ::prost::bytes::Bytes,
    #[prost(bool, required, tag = "3")]
    pub need_location: bool,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct DirectoryListing {
    #[prost(message, repeated, tag = "1")]
    pub partial_listing: ::prost::alloc::vec::Vec<FileStatus>,
    #[prost(uint32, required, tag = "2")]
    pub remaining_entries: u32,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ListingResponse {
    #[prost(message, optional, tag = "1")]
    pub dir_list: ::core::option::Option<DirectoryListing>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct RenameRequest {
    #[prost(string, required, tag = "1")]
    pub src: ::prost::alloc::string::String,
    #[prost(string, required, tag = "2")]
    pub dst: ::prost::alloc::string::String,
    #[prost(bool, required, tag = "3")]
    pub overwrite_dest: bool,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct DeleteRequest {
    #[prost(string, required, tag = "1")]
    pub src: ::prost::alloc::string::String,
    #[prost(bool, required, tag = "2")]
    pub recursive: bool,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct MkdirsRequest {
    #[prost(string, required, tag = "1")]
    pub src: ::prost::alloc::string::String,
    #[prost(message, required, tag = "2")]
    pub masked: FsPermission,
    #[prost(bool, required, tag = "3")]
    pub create_parent: bool,
}
#[derive(Clone, Copy, PartialEq, ::prost::Message)]
pub struct FsStatsResponse {
    #[prost(uint64, required, tag = "1")]
    pub capacity: u64,
    #[prost(uint64, required, tag = "2")]
    pub used: u64,
    #[prost(uint64, required, tag = "3")]
    pub remaining: u64,
}
#[derive(Clone, Copy, PartialEq, ::prost::Message)]
pub struct ServerDefaults {
    #[prost(uint64, required, tag = "1")]
    pub block_size: u64,
    #[prost(uint32, required, tag = "2")]
    pub bytes_per_checksum: u32,
    #[prost(uint32, required, tag = "3")]
    pub write_packet_size: u32,
    #[prost(uint32, required, tag = "4")]
    pub replication: u32,
    #[prost(uint32, required, tag = "5")]
    pub file_buffer_size: u32,
    #[prost(bool, optional, tag = "6")]
    pub encrypt_data_transfer: ::core::option::Option<bool>,
}
#[derive(Clone, Copy, PartialEq, ::prost::Message)]
pub struct ServerDefaultsResponse {
    #[prost(message, required, tag = "1")]
    pub server_defaults: ServerDefaults,
}
#[derive(Clone, Copy, PartialEq, ::prost::Message)]
pub struct BoolResponse {
    #[prost(bool, required, tag = "1")]
    pub result: bool,
}
#[derive(Clone, Copy, PartialEq, ::prost::Message)]
pub struct Empty {

}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct BaseHeader {
    #[prost(message, required, tag = "1")]
    pub block: ExtendedBlock,
    #[prost(bytes = "bytes", optional, tag = "2")]
    pub token: ::core::option::Option<::prost::bytes::Bytes>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ClientOperationHeader {
    #[prost(message, required, tag = "1")]
    pub base_header: BaseHeader,
    #[prost(string, required, tag = "2")]
    pub client_name: ::prost::alloc::string::String,
}
#[derive(Clone, Copy, PartialEq, ::prost::Message)]
pub struct Checksum {
    #[prost(uint32, required, tag = "1")]
    pub r#type: u32,
    #[prost(uint32, required, tag = "2")]
    pub bytes_per_checksum: u32,
}
#[derive(Clone, Copy, PartialEq, ::prost::Message)]
pub struct CachingStrategy {
    #[prost(bool, optional, tag = "1")]
    pub drop_behind: ::core::option::Option<bool>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct OpWriteBlock {
    #[prost(message, required, tag = "1")]
    pub header: ClientOperationHeader,
    #[prost(bytes = "bytes", repeated, tag = "2")]
    pub targets: ::prost::alloc::vec::Vec<::prost::bytes::Bytes>,
    #[prost(uint32, required, tag = "4")]
    pub stage: u32,
    #[prost(uint32, required, tag = "5")]
    pub pipeline_size: u32,
    #[prost(uint64, required, tag = "6")]
    pub min_bytes_rcvd: u64,
    #[prost(uint64, required, tag = "7")]
    pub max_bytes_rcvd: u64,
    #[prost(uint64, required, tag = "8")]
    pub latest_generation_stamp: u64,
    #[prost(message, required, tag = "9")]
    pub requested_checksum: Checksum,
    #[prost(message, optional, tag = "10")]
    pub caching_strategy: ::core::option::Option<CachingStrategy>,
    #[prost(uint32, optional, tag = "11")]
    pub storage_type: ::core::option::Option<u32>,
    #[prost(uint32, repeated, packed = "false", tag = "12")]
    pub target_storage_types: ::prost::alloc::vec::Vec<u32>,
    #[prost(string, optional, tag = "16")]
    pub storage_id: ::core::option::Option<::prost::alloc::string::String>,
    #[prost(string, repeated, tag = "17")]
    pub target_storage_ids: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct BlockOpResponse {
    #[prost(uint32, required, tag = "1")]
    pub status: u32,
    #[prost(string, optional, tag = "2")]
    pub first_bad_link: ::core::option::Option<::prost::alloc::string::String>,
    #[prost(string, optional, tag = "5")]
    pub message: ::core::option::Option<::prost::alloc::string::String>,
}
#[derive(Clone, Copy, PartialEq, ::prost::Message)]
pub struct PacketHeader {
    #[prost(sfixed64, required, tag = "1")]
    pub offset_in_block: i64,
    #[prost(sfixed64, required, tag = "2")]
    pub seqno: i64,
    #[prost(bool, required, tag = "3")]
    pub last_packet_in_block: bool,
    #[prost(sfixed32, required, tag = "4")]
    pub data_len: i32,
    #[prost(bool, optional, tag = "5")]
    pub sync_block: ::core::option::Option<bool>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct PipelineAck {
    #[prost(sint64, required, tag = "1")]
    pub seqno: i64,
    #[prost(uint32, repeated, packed = "false", tag = "2")]
    pub reply: ::prost::alloc::vec::Vec<u32>,
    #[prost(uint32, repeated, tag = "4")]
    pub flag: ::prost::alloc::vec::Vec<u32>,
}
