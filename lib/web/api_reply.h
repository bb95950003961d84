// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <google/protobuf/message.h>
#include <grpcpp/grpcpp.h>

#include <string>
#include <string_view>

#include "lib/base/json_writer.h"
#include "lib/web/web_server.h"

// Writes the answers of the page's API (docs/formats/view_api.md) and reads its bodies. Pure
// functions, any thread.
namespace neurontrace {

// Returns the answer for an error: its HTTP status, its code, its message, and as `hint` the
// command or setting that fixes it. An empty `hint` becomes that of the code, if there is one.
WebReply ErrorReply(const grpc::Status& status, std::string_view hint = {});
// Writes the members of that answer's error object, `{"code": …}`, as a value.
void WriteError(const grpc::Status& status, std::string_view hint, JsonWriter& json);

// Returns an answer that browsers do not keep.
WebReply JsonReply(std::string json);
// Returns a message as proto3 JSON with the names of its .proto file.
WebReply MessageReply(const google::protobuf::Message& message);
// Parses a body into a message. Fails with INVALID_ARGUMENT also for members that the message does
// not have.
grpc::Status ParseBody(const std::string& body, google::protobuf::Message& message);

}  // namespace neurontrace
