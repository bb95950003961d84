// SPDX-License-Identifier: Apache-2.0
// Goal: the page's requests reach the operator service with what they ask, and nobody without the
// session's token, on a foreign host name or from another site gets through.
#include "lib/web/operator_gateway.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "lib/trace/web_limits.h"
#include "lib/web/web_assets.h"

namespace neurontrace {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kToken = "0123456789abcdef0123456789abcdef";

// An aggregator that remembers what it was asked.
class FakeOperator final : public v1::OperatorService::Service {
 public:
  grpc::Status ListCaptures(grpc::ServerContext* context, const v1::ListCapturesRequest*,
                            v1::ListCapturesReply* reply) override {
    const auto name = context->client_metadata().find("caller");
    caller = name == context->client_metadata().end()
                 ? ""
                 : std::string(name->second.data(), name->second.size());
    reply->add_captures()->set_capture_id("01ABC");
    return grpc::Status::OK;
  }
  grpc::Status GetCapture(grpc::ServerContext*, const v1::CaptureReference* request,
                          v1::Capture* reply) override {
    if (request->capture_id() != "01ABC") {
      return {grpc::StatusCode::NOT_FOUND, "there is no capture " + request->capture_id()};
    }
    reply->mutable_certificate()->set_verdict("complete");
    reply->set_capture_id("01ABC");
    reply->mutable_spec()->set_name("night run");
    return grpc::Status::OK;
  }
  grpc::Status StartCapture(grpc::ServerContext*, const v1::StartCaptureRequest* request,
                            v1::Capture* reply) override {
    started = *request;
    reply->set_capture_id("01NEW");
    return grpc::Status::OK;
  }
  grpc::Status WatchCapture(grpc::ServerContext*, const v1::CaptureReference* request,
                            grpc::ServerWriter<v1::Capture>* writer) override {
    v1::Capture capture;
    capture.set_capture_id(request->capture_id());
    capture.mutable_preview()->set_events(17);
    if (request->capture_id() == "01NONE")
      return {grpc::StatusCode::NOT_FOUND, "no capture 01NONE"};
    writer->Write(capture);
    if (request->capture_id() == "01CUT") return {grpc::StatusCode::UNAVAILABLE, "shutting down"};
    return grpc::Status::OK;
  }
  grpc::Status DeleteCapture(grpc::ServerContext*, const v1::CaptureReference* request,
                             v1::DeleteCaptureReply*) override {
    deleted.insert(request->capture_id());
    return grpc::Status::OK;
  }
  grpc::Status GetView(grpc::ServerContext*, const v1::ViewRequest* request,
                       grpc::ServerWriter<v1::ViewReply>* writer) override {
    v1::ViewReply part;
    part.set_data(request->capture_id() + " " + request->what() + " ");
    writer->Write(part);
    part.set_data(request->query());
    writer->Write(part);
    return grpc::Status::OK;
  }
  grpc::Status Export(grpc::ServerContext*, const v1::ExportRequest* request,
                      grpc::ServerWriter<v1::ExportReply>* writer) override {
    if (request->window_start_ns() == 13) return {grpc::StatusCode::INVALID_ARGUMENT, "bad window"};
    v1::ExportReply reply;
    reply.mutable_progress();
    writer->Write(reply);
    reply.set_data("trace");
    writer->Write(reply);
    return grpc::Status::OK;
  }

  v1::StartCaptureRequest started;
  std::set<std::string> deleted;
  std::string caller;  // of ListCaptures
};

class OperatorGatewayTest : public ::testing::Test {
 protected:
  OperatorGatewayTest() {
    grpc::ServerBuilder builder;
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    stub_ = v1::OperatorService::NewStub(server_->InProcessChannel({}));
    gateway_ = std::make_unique<OperatorGateway>(
        *stub_, assets_, OperatorGateway::Options{.token = kToken, .hosts = {"view.example"}});
  }
  ~OperatorGatewayTest() override {
    gateway_.reset();
    server_->Shutdown();
  }

  static WebRequest Request(const std::string& method, const std::string& path,
                            const std::string& query = "", const std::string& body = "") {
    return {.method = method,
            .path = path,
            .query = query,
            .host = "127.0.0.1:9403",
            .cookie = std::string("other=1; neurontrace_01234567=") + kToken,
            .content_type = body.empty() && method == "GET" ? "" : "application/json",
            .body = body};
  }
  WebReply Ask(const WebRequest& request) { return gateway_->Handle(request); }

  FakeOperator service_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<v1::OperatorService::Stub> stub_;
  const WebAssets assets_ = WebAssets::BuiltIn();
  std::unique_ptr<OperatorGateway> gateway_;
};

std::string HeaderOf(const WebReply& reply, const std::string& name) {
  for (const auto& [key, value] : reply.headers) {
    if (key == name) return value;
  }
  return "";
}

TEST_F(OperatorGatewayTest, ListsCapturesAsJson) {
  const WebReply reply = Ask(Request("GET", "/api/v1/captures"));
  EXPECT_EQ(reply.status, 200);
  EXPECT_THAT(reply.body, HasSubstr("\"capture_id\":\"01ABC\""));
  EXPECT_EQ(HeaderOf(reply, "Cache-Control"), "no-store");
}

TEST_F(OperatorGatewayTest, EveryAnswerHasThePolicyOfThePage) {
  for (const char* const path : {"/", "/capture/01ABC", "/api/v1/captures", "/api/v1/nothing"}) {
    const WebReply reply = Ask(Request("GET", path));
    EXPECT_THAT(HeaderOf(reply, "Content-Security-Policy"), HasSubstr("default-src 'none'"))
        << path;
    EXPECT_EQ(HeaderOf(reply, "X-Content-Type-Options"), "nosniff") << path;
  }
}

TEST_F(OperatorGatewayTest, PageIsCompressedForClientsThatAcceptIt) {
  WebRequest request = Request("GET", "/");
  EXPECT_THAT(Ask(request).body, HasSubstr("<title>neurontrace"));
  EXPECT_EQ(HeaderOf(Ask(request), "Content-Encoding"), "");
  request.accept_encoding = "gzip, br";
  const WebReply reply = Ask(request);
  // A build without esbuild has one short page.
  if (HeaderOf(reply, "Content-Encoding").empty()) GTEST_SKIP() << "built without the page";
  EXPECT_THAT(reply.body, testing::StartsWith("\x1f\x8b"));
}

TEST_F(OperatorGatewayTest, RefusesCallsWithoutTheToken) {
  WebRequest request = Request("GET", "/api/v1/captures");
  request.cookie = "neurontrace_01234567=ffffffffffffffffffffffffffffffff";
  EXPECT_EQ(Ask(request).status, 401);
  request.cookie = "";
  EXPECT_EQ(Ask(request).status, 401);
  EXPECT_THAT(Ask(request).body, HasSubstr("neurontrace view"));
}

TEST_F(OperatorGatewayTest, TokenOfTheAddressBecomesACookie) {
  WebRequest request = Request("GET", "/capture/01ABC", std::string("token=") + kToken);
  request.cookie = "";
  const WebReply reply = Ask(request);
  EXPECT_EQ(reply.status, 303);
  EXPECT_EQ(HeaderOf(reply, "Location"), "/capture/01ABC");
  EXPECT_THAT(HeaderOf(reply, "Set-Cookie"), HasSubstr("HttpOnly; SameSite=Strict"));
  request.query = "token=wrong";
  EXPECT_EQ(Ask(request).status, 401);
  EXPECT_EQ(HeaderOf(Ask(request), "Set-Cookie"), "");
}

TEST_F(OperatorGatewayTest, TokenLeavesTheOtherParametersInTheAddress) {
  const std::string token = std::string("token=") + kToken;
  for (const std::string& query : {"from=1&to=2&" + token, token + "&from=1&to=2",
                                   "from=1&" + token + "&to=2", token + "&from=1&to=2&" + token}) {
    EXPECT_EQ(HeaderOf(Ask(Request("GET", "/capture/01ABC", query)), "Location"),
              "/capture/01ABC?from=1&to=2")
        << query;
  }
}

TEST_F(OperatorGatewayTest, TokenRedirectStaysOnThisServer) {
  for (const char* const path :
       {"//evil.example/", "/\\evil.example/", "http://evil.example/", "evil.example", ""}) {
    EXPECT_EQ(HeaderOf(Ask(Request("GET", path, std::string("token=") + kToken)), "Location"), "/");
  }
}

TEST_F(OperatorGatewayTest, RefusesForeignHostNames) {
  for (const char* const host :
       {"evil.example", "127.0.0.1.evil.example:9403", "", "127.0.0.1,evil"}) {
    WebRequest request = Request("GET", "/api/v1/captures");
    request.host = host;
    EXPECT_EQ(Ask(request).status, 403) << host;
  }
  for (const char* const host : {"LOCALHOST:1", "[::1]:9403", "view.example"}) {
    WebRequest request = Request("GET", "/api/v1/captures");
    request.host = host;
    EXPECT_EQ(Ask(request).status, 200) << host;
  }
}

TEST_F(OperatorGatewayTest, RefusesChangesFromOtherSites) {
  WebRequest request =
      Request("DELETE", "/api/v1/captures/01ABC", "", R"({"confirm":"night run"})");
  request.fetch_site = "cross-site";
  EXPECT_EQ(Ask(request).status, 403);
  request.fetch_site = "same-origin";
  request.content_type = "text/plain";
  EXPECT_EQ(Ask(request).status, 403);
  EXPECT_TRUE(service_.deleted.empty());
  request.content_type = "application/json";
  EXPECT_EQ(Ask(request).status, 200);
  EXPECT_EQ(service_.deleted.count("01ABC"), 1u);
}

TEST_F(OperatorGatewayTest, DeletesOnlyWhatSomebodyTyped) {
  for (const char* const body : {"{}", R"({"confirm":""})", R"({"confirm":"other"})"}) {
    EXPECT_EQ(Ask(Request("DELETE", "/api/v1/captures/01ABC", "", body)).status, 409) << body;
  }
  EXPECT_TRUE(service_.deleted.empty());
  EXPECT_EQ(Ask(Request("DELETE", "/api/v1/captures/01ABC", "", R"({"confirm":"01ABC"})")).status,
            200);
}

TEST_F(OperatorGatewayTest, TokenInABodySignsIn) {
  WebRequest request = Request("POST", "/api/v1/session", "", R"({"token":"wrong"})");
  request.cookie = "";
  EXPECT_EQ(Ask(request).status, 401);
  request.body = std::string(R"({"token":")") + kToken + R"("})";
  const WebReply reply = Ask(request);
  EXPECT_EQ(reply.status, 200);
  EXPECT_THAT(HeaderOf(reply, "Set-Cookie"), HasSubstr("HttpOnly"));
}

TEST_F(OperatorGatewayTest, ErrorsHaveTheCodeAndTheMessage) {
  const WebReply reply = Ask(Request("GET", "/api/v1/captures/01X"));
  EXPECT_EQ(reply.status, 404);
  EXPECT_EQ(reply.body, R"({"error":{"code":"NOT_FOUND","message":"there is no capture 01X"}})");
  EXPECT_EQ(Ask(Request("GET", "/api/v1/elsewhere")).status, 404);
  EXPECT_EQ(Ask(Request("POST", "/api/v1/agents", "", "{}")).status, 405);
  EXPECT_EQ(Ask(Request("POST", "/api/v1/captures", "", "{broken")).status, 400);
}

TEST_F(OperatorGatewayTest, RefusesAddressesThatAreNotUtf8) {
  for (const char* const query : {"q=\xff", "q=\xed\xa0\x80"}) {
    const WebReply reply = Ask(Request("GET", "/api/v1/captures/01ABC/spans", query));
    EXPECT_EQ(reply.status, 400);
    EXPECT_THAT(reply.body, HasSubstr("INVALID_ARGUMENT"));
  }
  EXPECT_EQ(Ask(Request("GET", "/api/v1/captures/\xc3")).status, 400);
  EXPECT_EQ(Ask(Request("GET", "/api/v1/captures/01ABC/spans", "q=µ")).status, 200);
}

TEST_F(OperatorGatewayTest, FurtherPagesThatFollowCapturesAreTurnedAway) {
  std::vector<WebReply> followed;
  for (int i = 0; i < limits::kWebWatchesMax; ++i) {
    followed.push_back(Ask(Request("GET", "/api/v1/captures/01ABC/watch")));
    ASSERT_EQ(followed.back().status, 200);
  }
  const WebReply refused = Ask(Request("GET", "/api/v1/captures/01ABC/watch"));
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(HeaderOf(refused, "Retry-After"), "1");
  EXPECT_THAT(refused.body, HasSubstr("RESOURCE_EXHAUSTED"));
  followed.pop_back();
  EXPECT_EQ(Ask(Request("GET", "/api/v1/captures/01ABC/watch")).status, 200);
}

TEST_F(OperatorGatewayTest, PassesQuestionsOfThePageOn) {
  const WebReply reply = Ask(Request("GET", "/api/v1/captures/01ABC/spans", "from=1&to=2"));
  EXPECT_EQ(reply.body, "01ABC spans from=1&to=2");
  EXPECT_EQ(reply.content_type, "application/octet-stream");
  EXPECT_EQ(Ask(Request("GET", "/api/v1/captures/01ABC/layout")).body, "01ABC layout ");
}

TEST_F(OperatorGatewayTest, StartsCapturesAndPreviews) {
  const std::string spec = R"({"spec":{"name":"n","duration_ns":"1000000000"}})";
  EXPECT_THAT(Ask(Request("POST", "/api/v1/captures", "", spec)).body, HasSubstr("01NEW"));
  EXPECT_EQ(service_.started.spec().name(), "n");
  EXPECT_EQ(service_.started.spec().mode(), v1::CAPTURE_MODE_STREAM);
  const std::string preview = R"({"spec":{"name":"n"},"dry_run":true})";
  EXPECT_THAT(Ask(Request("POST", "/api/v1/captures", "", preview)).body,
              HasSubstr("\"events\":\"17\""));
  EXPECT_EQ(service_.started.spec().mode(), v1::CAPTURE_MODE_PREVIEW);
}

TEST_F(OperatorGatewayTest, StreamsChangesOfACapture) {
  const WebReply reply = Ask(Request("GET", "/api/v1/captures/01ABC/watch"));
  EXPECT_EQ(reply.content_type, "text/event-stream");
  EXPECT_THAT(reply.body, HasSubstr("data: {\"state\":"));
  std::string piece;
  ASSERT_NE(reply.stream, nullptr);
  EXPECT_EQ(reply.stream->Read(piece), WebStream::Next::kEnd);
}

// A browser that follows a capture connects again only if it sees that the stream broke.
TEST_F(OperatorGatewayTest, WatchThatBreaksOffIsNoCompleteAnswer) {
  const WebReply reply = Ask(Request("GET", "/api/v1/captures/01CUT/watch"));
  EXPECT_EQ(reply.status, 200);
  std::string piece;
  ASSERT_NE(reply.stream, nullptr);
  EXPECT_EQ(reply.stream->Read(piece), WebStream::Next::kFailed);
  EXPECT_EQ(Ask(Request("GET", "/api/v1/captures/01NONE/watch")).status, 404);
}

TEST_F(OperatorGatewayTest, StreamsExportsAndAnswersRefusedOnes) {
  const WebReply reply = Ask(Request("GET", "/api/v1/captures/01ABC/export", "format=pftrace"));
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body, "trace");
  EXPECT_THAT(HeaderOf(reply, "Content-Disposition"), HasSubstr("01ABC.pftrace"));
  const WebReply refused =
      Ask(Request("GET", "/api/v1/captures/01ABC/export", "format=pftrace&from=13"));
  EXPECT_EQ(refused.status, 400);
  EXPECT_THAT(refused.body, HasSubstr("bad window"));
  for (const char* const query : {"format=xml", "format=json&streams=1", "format=json&gids=3-1",
                                  "format=json&gids=x", "format=json&from=now"}) {
    EXPECT_EQ(Ask(Request("GET", "/api/v1/captures/01ABC/export", query)).status, 400) << query;
  }
  EXPECT_EQ(Ask(Request("GET", "/api/v1/captures/01ABC/export", "format=json&gids=3,8-15")).status,
            200);
}

// Adds what identifies the caller, as the aggregator's port does.
class Alice final : public WebCaller {
 public:
  void Identify(grpc::ClientContext& context) const override {
    context.AddMetadata("caller", "alice");
  }
};

TEST_F(OperatorGatewayTest, MakesCallsForACallerAndNamesItsRole) {
  const auto of_alice = gateway_->For(std::make_shared<Alice>(), "alice", "operator");
  EXPECT_THAT(of_alice->Answer(Request("GET", "/api/v1/session")).body,
              HasSubstr(R"("user":"alice","role":"operator","may":{"view":true,"start":true,)"
                        R"("stop":true,"delete":false)"));
  EXPECT_EQ(of_alice->Answer(Request("GET", "/api/v1/captures")).status, 200);
  EXPECT_EQ(service_.caller, "alice");
  EXPECT_EQ(Ask(Request("GET", "/api/v1/captures")).status, 200);
  EXPECT_EQ(service_.caller, "") << "the gateway itself has its connection's identity";
  gateway_->Stop();
  EXPECT_NE(of_alice->Answer(Request("GET", "/api/v1/captures")).status, 200);
}

TEST_F(OperatorGatewayTest, AViewerMayOnlyLook) {
  const auto viewer = gateway_->For(std::make_shared<Alice>(), "eve", "viewer");
  EXPECT_THAT(viewer->Answer(Request("GET", "/api/v1/session")).body,
              HasSubstr(R"("start":false,"stop":false,"delete":false,"export":true)"));
}

TEST_F(OperatorGatewayTest, StoppedGatewayEndsCalls) {
  gateway_->Stop();
  EXPECT_NE(Ask(Request("GET", "/api/v1/captures")).status, 200);
}

}  // namespace
}  // namespace neurontrace
