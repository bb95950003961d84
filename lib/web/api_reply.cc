// SPDX-License-Identifier: Apache-2.0
#include "lib/web/api_reply.h"

#include <google/protobuf/util/json_util.h>

#include <utility>

namespace neurontrace {
namespace {

constexpr std::string_view kJson = "application/json; charset=utf-8";

// The HTTP status of each code of gRPC, its name as google/rpc/code.proto lists it, and what helps
// whatever the message is.
struct CodeTraits {
  int http;
  std::string_view name;
  std::string_view hint = {};
};
CodeTraits TraitsOf(grpc::StatusCode code) {
  switch (code) {
    case grpc::StatusCode::INVALID_ARGUMENT:
      return {400, "INVALID_ARGUMENT"};
    case grpc::StatusCode::UNAUTHENTICATED:
      return {401, "UNAUTHENTICATED"};
    case grpc::StatusCode::PERMISSION_DENIED:
      return {403, "PERMISSION_DENIED",
              "The access policy of the aggregator (--access) gives roles to callers."};
    case grpc::StatusCode::NOT_FOUND:
      return {404, "NOT_FOUND"};
    case grpc::StatusCode::FAILED_PRECONDITION:
      return {409, "FAILED_PRECONDITION"};
    case grpc::StatusCode::ALREADY_EXISTS:
      return {409, "ALREADY_EXISTS"};
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
      return {429, "RESOURCE_EXHAUSTED"};
    case grpc::StatusCode::UNIMPLEMENTED:
      return {501, "UNIMPLEMENTED",
              "The aggregator is older than this command: update it, or use the command of its "
              "version."};
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return {504, "DEADLINE_EXCEEDED", "Choose a shorter time window or fewer ranks."};
    case grpc::StatusCode::UNAVAILABLE:
      return {503, "UNAVAILABLE",
              "Check that the aggregator runs and is reachable from here: `neurontrace status`."};
    default:
      return {500, "INTERNAL"};
  }
}

}  // namespace

void WriteError(const grpc::Status& status, std::string_view hint, JsonWriter& json) {
  const CodeTraits traits = TraitsOf(status.error_code());
  json.Open('{').Member("code", traits.name).Member("message", status.error_message());
  if (hint.empty()) hint = traits.hint;
  if (!hint.empty()) json.Member("hint", hint);
  json.Close('}');
}

WebReply ErrorReply(const grpc::Status& status, std::string_view hint) {
  JsonWriter json;
  json.Open('{').Key("error");
  WriteError(status, hint, json);
  json.Close('}');
  WebReply reply{.status = TraitsOf(status.error_code()).http,
                 .content_type = std::string(kJson),
                 .body = json.Take()};
  if (reply.status == 429) reply.headers.emplace_back("Retry-After", "1");
  return reply;
}

WebReply JsonReply(std::string json) {
  return {.content_type = std::string(kJson),
          .headers = {{"Cache-Control", "no-store"}},
          .body = std::move(json)};
}

WebReply MessageReply(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  std::string json;
  const auto status = google::protobuf::util::MessageToJsonString(message, &json, options);
  if (!status.ok()) return ErrorReply({grpc::StatusCode::INTERNAL, status.ToString()});
  return JsonReply(std::move(json));
}

grpc::Status ParseBody(const std::string& body, google::protobuf::Message& message) {
  const auto status = google::protobuf::util::JsonStringToMessage(body, &message);
  if (status.ok()) return grpc::Status::OK;
  return {grpc::StatusCode::INVALID_ARGUMENT, "the request's body: " + status.ToString()};
}

}  // namespace neurontrace
