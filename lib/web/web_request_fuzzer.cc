// SPDX-License-Identifier: Apache-2.0
// Any request that the server can have read: without the session's token, for a foreign host name
// or from another site nothing reaches the aggregator, nothing is deleted that was not typed, every
// redirect stays on this server, and every answer of the API is JSON.
//
// The lines of an input are method, path, query, Host, Cookie, Content-Type and Sec-Fetch-Site. The
// rest is the body.
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "lib/base/fuzz_input.h"
#include "lib/web/operator_gateway.h"
#include "lib/web/web_parameters.h"

namespace {

using neurontrace::CheckPromise;
using neurontrace::OperatorGateway;
using neurontrace::WebReply;
using neurontrace::WebRequest;
namespace v1 = neurontrace::v1;

constexpr char kToken[] = "0123456789abcdef0123456789abcdef";
constexpr char kId[] = "01ABC";
constexpr char kName[] = "night run";

// An aggregator with one capture, which counts its calls.
class OneCapture final : public v1::OperatorService::Service {
 public:
  grpc::Status ListCaptures(grpc::ServerContext*, const v1::ListCapturesRequest*,
                            v1::ListCapturesReply* reply) override {
    ++calls;
    reply->add_captures()->set_capture_id(kId);
    return grpc::Status::OK;
  }
  grpc::Status GetCapture(grpc::ServerContext*, const v1::CaptureReference* request,
                          v1::Capture* reply) override {
    ++calls;
    if (request->capture_id() != kId) return {grpc::StatusCode::NOT_FOUND, request->capture_id()};
    reply->set_capture_id(kId);
    reply->mutable_spec()->set_name(kName);
    return grpc::Status::OK;
  }
  grpc::Status StartCapture(grpc::ServerContext*, const v1::StartCaptureRequest* request,
                            v1::Capture* reply) override {
    ++calls;
    reply->set_capture_id(kId);
    *reply->mutable_spec() = request->spec();
    return grpc::Status::OK;
  }
  grpc::Status WatchCapture(grpc::ServerContext*, const v1::CaptureReference* request,
                            grpc::ServerWriter<v1::Capture>* writer) override {
    ++calls;
    v1::Capture capture;
    capture.set_capture_id(request->capture_id());
    writer->Write(capture);
    return grpc::Status::OK;
  }
  grpc::Status DeleteCapture(grpc::ServerContext*, const v1::CaptureReference*,
                             v1::DeleteCaptureReply*) override {
    ++calls;
    ++deletions;
    return grpc::Status::OK;
  }
  grpc::Status GetView(grpc::ServerContext*, const v1::ViewRequest* request,
                       grpc::ServerWriter<v1::ViewReply>*) override {
    ++calls;
    return {grpc::StatusCode::INVALID_ARGUMENT, request->query()};
  }
  grpc::Status Export(grpc::ServerContext*, const v1::ExportRequest*,
                      grpc::ServerWriter<v1::ExportReply>*) override {
    ++calls;
    return {grpc::StatusCode::INVALID_ARGUMENT, "the window is empty"};
  }

  // Calls are answered before the gateway's functions return.
  std::atomic<int> calls = 0;
  std::atomic<int> deletions = 0;
};

// One aggregator and one gateway for all inputs. Nothing that an input does may change what the
// next one meets.
struct World {
  World() {
    grpc::ServerBuilder builder;
    builder.RegisterService(&service);
    server = builder.BuildAndStart();
    stub = v1::OperatorService::NewStub(server->InProcessChannel({}));
    gateway = std::make_unique<OperatorGateway>(
        *stub, assets, OperatorGateway::Options{.token = kToken, .hosts = {"view.example"}});
  }
  OneCapture service;
  std::unique_ptr<grpc::Server> server;
  std::unique_ptr<v1::OperatorService::Stub> stub;
  const neurontrace::WebAssets assets = neurontrace::WebAssets::BuiltIn();
  std::unique_ptr<OperatorGateway> gateway;
};

std::string Line(std::string_view& text) {
  const size_t end = std::min(text.find('\n'), text.size());
  const std::string line(text.substr(0, end));
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

bool Has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// One of the four names, in either case, with a port or without.
bool IsOwnHost(std::string_view host) {
  for (const std::string_view name : {"localhost", "127.0.0.1", "[::1]", "view.example"}) {
    const std::string_view begin = host.substr(0, name.size());
    const std::string_view end = host.substr(begin.size());
    const bool is_equal =
        std::ranges::equal(begin, name, {}, [](unsigned char c) { return std::tolower(c); });
    if (is_equal && (end.empty() || end.front() == ':')) return true;
  }
  return false;
}

// What has to be true of a request that reached the aggregator.
void CheckReached(const WebRequest& request) {
  CheckPromise(Has(request.cookie, kToken), "no call without the token");
  CheckPromise(request.path.starts_with("/api/v1/"), "no call outside of the API");
  CheckPromise(IsOwnHost(request.host), "no call for a foreign host name");
  if (request.method == "GET") return;
  CheckPromise(request.content_type.starts_with("application/json"), "no change by a form");
  CheckPromise(request.fetch_site.empty() || request.fetch_site == "same-origin",
               "no change for another site");
}

void CheckReply(const WebRequest& request, const WebReply& reply) {
  CheckPromise(reply.status >= 200 && reply.status < 600, "a status of HTTP");
  bool has_policy = false;
  for (const auto& [name, value] : reply.headers) {
    CheckPromise(value.find_first_of("\r\n") == std::string::npos, "a header is one line");
    has_policy |= name == "Content-Security-Policy";
    if (name == "Set-Cookie") {
      CheckPromise(Has(request.query, kToken) || request.path == "/api/v1/session",
                   "a cookie for a token");
    }
    if (name != "Location") continue;
    const bool is_here =
        value.starts_with('/') && !value.starts_with("//") && !value.starts_with("/\\");
    CheckPromise(is_here, "a redirect stays on this server");
    const std::string_view query =
        std::string_view(value).substr(std::min(value.find('?'), value.size() - 1) + 1);
    CheckPromise(neurontrace::ParameterOf(query, "token").empty(), "the token leaves the address");
  }
  CheckPromise(has_policy, "every answer has the policy of the page");
  if (!reply.content_type.starts_with("application/json")) return;
  google::protobuf::Value json;
  CheckPromise(google::protobuf::util::JsonStringToMessage(reply.body, &json).ok(),
               "answers of the API are JSON");
}

void CheckParameters(std::string_view query) {
  const std::string rest = neurontrace::WithoutParameter(query, "token");
  CheckPromise(neurontrace::ParameterOf(rest, "token").empty(), "a parameter is removed entirely");
  CheckPromise(neurontrace::WithoutParameter(rest, "token") == rest, "removing twice is as once");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static World* const world = new World();  // never destroyed: the process ends without a warning
  std::string_view text(reinterpret_cast<const char*>(data), size);
  WebRequest request;
  request.method = Line(text);
  // Beast refuses blanks and control characters in an address.
  const std::string_view target = text.substr(0, text.find('\n', text.find('\n') + 1));
  const auto is_refused = [](unsigned char c) { return c != '\n' && (c <= ' ' || c == 0x7f); };
  if (std::ranges::any_of(target, is_refused)) return -1;
  request.path = Line(text);
  request.query = Line(text);
  request.host = Line(text);
  request.cookie = Line(text);
  request.content_type = Line(text);
  request.fetch_site = Line(text);
  request.body = std::string(text);
  world->service.calls = 0;
  world->service.deletions = 0;
  {
    const WebReply reply = world->gateway->Handle(request);
    CheckReply(request, reply);
  }
  if (world->service.calls > 0) CheckReached(request);
  if (world->service.deletions > 0) {
    CheckPromise(request.method == "DELETE", "only DELETE deletes");
    google::protobuf::Struct body;
    CheckPromise(google::protobuf::util::JsonStringToMessage(request.body, &body).ok(), "a body");
    const std::string& typed = (*body.mutable_fields())["confirm"].string_value();
    CheckPromise(typed == kId || typed == kName, "nothing is deleted without its name");
  }
  CheckParameters(request.query);
  return 0;
}
