// SPDX-License-Identifier: Apache-2.0
// Goal: the page's requests reach the operator service with what they ask, and nobody without the
// session's token, on a foreign host name or from another site gets through.
#include "lib/web/operator_gateway.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
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
  grpc::Status UpdateCapture(grpc::ServerContext*, const v1::UpdateCaptureRequest* request,
                             v1::Capture* reply) override {
    if (request->name() == "taken away") {
      return {grpc::StatusCode::FAILED_PRECONDITION, "capture 01ABC is being deleted"};
    }
    updated = *request;
    reply->set_capture_id("01ABC");
    reply->set_starred(request->starred());
    *reply->mutable_tags() = request->add_tags();
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
  grpc::Status Explain(grpc::ServerContext*, const v1::ExplainRequest* request,
                       v1::InsightReport* reply) override {
    explained = *request;
    if (request->capture_id() != "01ABC") return {grpc::StatusCode::NOT_FOUND, "no such capture"};
    reply->add_verdicts()->set_kind(v1::VERDICT_KIND_SLOW_CORE);
    reply->mutable_verdicts(0)->add_suspects()->set_worker_gid(13);
    reply->set_step_ns(500);
    reply->set_text("1 verdict");
    return grpc::Status::OK;
  }
  // Writes two files at once if the format has several, else one.
  grpc::Status Export(grpc::ServerContext*, const v1::ExportRequest* request,
                      grpc::ServerWriter<v1::ExportReply>* writer) override {
    if (request->window_start_ns() == 13) return {grpc::StatusCode::INVALID_ARGUMENT, "bad window"};
    exported = *request;
    v1::ExportReply reply;
    reply.mutable_progress()->set_chunks_read(3);
    reply.mutable_progress()->set_chunks_total(4);
    writer->Write(reply);
    const uint32_t files = request->format() == v1::EXPORT_FORMAT_PARQUET ? 2 : 1;
    for (uint32_t i = 0; i < files; ++i) {
      reply.set_file("file" + std::to_string(i));
      writer->Write(reply);
    }
    for (uint32_t i = 0; i < files; ++i) {
      reply.set_file_number(i);
      reply.set_data("trace");
      writer->Write(reply);
      reply.set_file_end(true);
      writer->Write(reply);
    }
    if (ends_early) return grpc::Status::OK;
    reply.mutable_done()->mutable_total()->set_chunks_read(4);
    reply.mutable_done()->mutable_total()->set_chunks_total(4);
    reply.mutable_done()->add_warnings("2 events have no rank");
    writer->Write(reply);
    return grpc::Status::OK;
  }
  grpc::Status ListArtifacts(grpc::ServerContext*, const v1::CaptureReference* request,
                             v1::ListArtifactsReply* reply) override {
    reply->add_artifacts()->set_path(request->capture_id() + "/model.neff");
    return grpc::Status::OK;
  }
  grpc::Status GetArtifact(grpc::ServerContext*, const v1::GetArtifactRequest* request,
                           grpc::ServerWriter<v1::GetArtifactReply>* writer) override {
    if (request->sha256() != "ab12") return {grpc::StatusCode::NOT_FOUND, "no such artifact"};
    v1::GetArtifactReply reply;
    reply.mutable_artifact()->set_path("neffs/mo\"del.neff");
    reply.mutable_artifact()->set_bytes(6);
    writer->Write(reply);
    for (const char* const piece : {"con", "tent"}) {
      reply.set_data(piece);
      writer->Write(reply);
    }
    return {grpc::StatusCode::DATA_LOSS, "the stored file is damaged"};
  }
  grpc::Status ListStandingExports(grpc::ServerContext*, const v1::ListStandingExportsRequest*,
                                   v1::ListStandingExportsReply* reply) override {
    reply->add_exports()->set_name("nightly");
    return grpc::Status::OK;
  }

  v1::ExportRequest exported;
  bool ends_early = false;  // exports lack their last reply
  v1::StartCaptureRequest started;
  v1::UpdateCaptureRequest updated;
  v1::ExplainRequest explained;
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

TEST_F(OperatorGatewayTest, AsksWhichRankIsSlow) {
  const WebReply reply =
      Ask(Request("GET", "/api/v1/captures/01ABC/why", "from=17&to=18&job=a%20b"));
  EXPECT_EQ(reply.status, 200);
  EXPECT_THAT(reply.body, HasSubstr("\"kind\":\"VERDICT_KIND_SLOW_CORE\""));
  EXPECT_THAT(reply.body, HasSubstr("\"worker_gid\":\"13\""));
  EXPECT_THAT(reply.body, HasSubstr("\"step_ns\":\"500\""));
  EXPECT_EQ(service_.explained.capture_id(), "01ABC");
  EXPECT_EQ(service_.explained.begin_ns(), 17u);
  EXPECT_EQ(service_.explained.end_ns(), 18u);
  EXPECT_EQ(service_.explained.job(), "a b");
  EXPECT_EQ(Ask(Request("GET", "/api/v1/captures/01NONE/why")).status, 404);
  EXPECT_EQ(Ask(Request("GET", "/api/v1/captures/01ABC/why", "from=1s")).status, 400);
  EXPECT_EQ(Ask(Request("GET", "/api/v1/captures/01ABC/why", "job=%ff")).status, 400);
  // The watch has no capture.
  EXPECT_EQ(Ask(Request("GET", "/api/v1/why")).status, 404);
  EXPECT_EQ(service_.explained.capture_id(), "");
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

TEST_F(OperatorGatewayTest, ChangesNameStarAndTags) {
  const auto patch = [this](const std::string& body) {
    return Ask(Request("PATCH", "/api/v1/captures/01ABC", "", body));
  };
  const WebReply reply = patch(R"({"starred":true,"add_tags":["a"],"remove_tags":["b"]})");
  EXPECT_EQ(reply.status, 200);
  EXPECT_THAT(reply.body, HasSubstr(R"("starred":true,"tags":["a"])"));
  EXPECT_EQ(service_.updated.capture_id(), "01ABC");
  EXPECT_FALSE(service_.updated.has_name());
  EXPECT_EQ(service_.updated.remove_tags(0), "b");
  EXPECT_EQ(patch(R"({"name":"","starred":false})").status, 200);
  EXPECT_TRUE(service_.updated.has_name());
  EXPECT_TRUE(service_.updated.has_starred());
  EXPECT_EQ(service_.updated.add_tags_size(), 0);
  EXPECT_THAT(Ask(Request("GET", "/api/v1/session")).body, HasSubstr("\"edit\":true"));
}

TEST_F(OperatorGatewayTest, RefusesChangesThatItCannotPassOn) {
  for (const char* const body : {"", "{broken", R"({"tags":["a"]})", R"({"starred":"maybe"})",
                                 R"({"name":"n","capture_id":"01XYZ"})"}) {
    EXPECT_EQ(Ask(Request("PATCH", "/api/v1/captures/01ABC", "", body)).status, 400) << body;
  }
  EXPECT_EQ(service_.updated.capture_id(), "");
  const WebReply conflict =
      Ask(Request("PATCH", "/api/v1/captures/01ABC", "", R"({"name":"taken away"})"));
  EXPECT_EQ(conflict.status, 409);
  EXPECT_THAT(conflict.body, HasSubstr("being deleted"));
  WebRequest foreign = Request("PATCH", "/api/v1/captures/01ABC", "", R"({"name":"n"})");
  foreign.fetch_site = "cross-site";
  EXPECT_EQ(Ask(foreign).status, 403);
  foreign.fetch_site = "same-origin";
  foreign.content_type = "text/plain";
  EXPECT_EQ(Ask(foreign).status, 403);
  EXPECT_EQ(service_.updated.capture_id(), "");
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
  EXPECT_EQ(Ask(Request("GET", "/api/v1/captures/01ABC/links", "event=4-1-2")).body,
            "01ABC links event=4-1-2");
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

// Reads an answer to its end.
std::string WholeBody(WebReply& reply, WebStream::Next& last) {
  std::string body = reply.body;
  std::string piece;
  while ((last = reply.stream->Read(piece)) == WebStream::Next::kMore) body += piece;
  return body;
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
  for (const char* const query :
       {"format=xml", "format=json&streams=x", "format=json&streams=-1", "format=json&gids=3-1",
        "format=json&gids=x", "format=json&from=now", "format=json&download=../x"}) {
    EXPECT_EQ(Ask(Request("GET", "/api/v1/captures/01ABC/export", query)).status, 400) << query;
  }
}

TEST_F(OperatorGatewayTest, PassesRanksStreamsAndWindowsToExports) {
  // Browsers escape commas.
  EXPECT_EQ(Ask(Request("GET", "/api/v1/captures/01ABC/export",
                        "format=events&gids=3%2C8-15&streams=4-7,9&from=5&to=9"))
                .status,
            200);
  const v1::ExportRequest& asked = service_.exported;
  EXPECT_EQ(asked.format(), v1::EXPORT_FORMAT_EVENTS);
  ASSERT_EQ(asked.worker_gids_size(), 2);
  EXPECT_EQ(asked.worker_gids(1).last(), 15);
  ASSERT_EQ(asked.streams_size(), 2);
  EXPECT_EQ(asked.streams(0).first(), 4u);
  EXPECT_EQ(asked.streams(1).last(), 9u);
  EXPECT_EQ(asked.window_start_ns(), 5u);
  EXPECT_EQ(asked.window_end_ns(), 9u);
}

TEST_F(OperatorGatewayTest, FormatsOfSeveralFilesAreAnArchive) {
  WebReply reply =
      Ask(Request("GET", "/api/v1/captures/01ABC/export", "format=parquet&download=d1"));
  ASSERT_EQ(reply.status, 200);
  EXPECT_THAT(HeaderOf(reply, "Content-Disposition"), HasSubstr("01ABC.parquet.tar"));
  WebStream::Next last;
  const std::string archive = WholeBody(reply, last);
  EXPECT_EQ(last, WebStream::Next::kEnd);
  // For each file a header and one block, then two empty blocks.
  ASSERT_EQ(archive.size(), 6u * 512);
  EXPECT_STREQ(archive.c_str(), "01ABC.parquet/file0");
  EXPECT_STREQ(archive.substr(512).c_str(), "trace");
  EXPECT_STREQ(archive.substr(1024).c_str(), "01ABC.parquet/file1");
  EXPECT_EQ(archive.substr(2048), std::string(1024, '\0'));
  const std::string state = Ask(Request("GET", "/api/v1/downloads/d1")).body;
  EXPECT_THAT(state, HasSubstr(R"("state":"done")"));
  EXPECT_THAT(state, HasSubstr(R"("bytes":"10")"));
  EXPECT_THAT(state, HasSubstr("2 events have no rank"));
}

TEST_F(OperatorGatewayTest, WithoutArchivesTheCommandThatNeedsNoneIsNamed) {
  OperatorGateway shared(*stub_, assets_,
                         OperatorGateway::Options{.token = kToken, .makes_archives = false});
  const WebReply reply =
      shared.Handle(Request("GET", "/api/v1/captures/01ABC/export", "format=parquet"));
  EXPECT_EQ(reply.status, 501);
  EXPECT_THAT(reply.body, HasSubstr("neurontrace export 01ABC --format parquet"));
}

TEST_F(OperatorGatewayTest, DownloadsOfOneUserAreUnknownToAnother) {
  const auto of = [&](const char* user, const char* method, const std::string& path,
                      const std::string& query = "") {
    return gateway_->For(nullptr, {user, "viewer"})->Answer(Request(method, path, query));
  };
  const WebReply reply =
      of("ann", "GET", "/api/v1/captures/01ABC/export", "format=pftrace&download=d1");
  ASSERT_EQ(reply.status, 200);
  EXPECT_THAT(of("bob", "GET", "/api/v1/downloads/d1").body, HasSubstr("unknown"));
  of("bob", "DELETE", "/api/v1/downloads/d1");
  EXPECT_THAT(of("ann", "GET", "/api/v1/downloads/d1").body, HasSubstr("running"));
}

TEST_F(OperatorGatewayTest, DownloadsShowTheirProgressAndTheirErrors) {
  EXPECT_EQ(Ask(Request("GET", "/api/v1/downloads/none")).body, R"({"state":"unknown"})");
  service_.ends_early = true;
  WebReply reply =
      Ask(Request("GET", "/api/v1/captures/01ABC/export", "format=pftrace&download=d1"));
  ASSERT_EQ(reply.status, 200);
  std::string state = Ask(Request("GET", "/api/v1/downloads/d1")).body;
  EXPECT_THAT(state, HasSubstr(R"("state":"running","file":"01ABC.pftrace")"));
  EXPECT_THAT(state, HasSubstr(R"("chunks_read":"3","chunks_total":"4")"));
  EXPECT_EQ(
      Ask(Request("GET", "/api/v1/captures/01ABC/export", "format=pftrace&download=d1")).status,
      429)
      << "the name is in use";
  WebStream::Next last;
  WholeBody(reply, last);
  EXPECT_EQ(last, WebStream::Next::kFailed) << "the browser sees that the file is not whole";
  state = Ask(Request("GET", "/api/v1/downloads/d1")).body;
  EXPECT_THAT(state, HasSubstr(R"("state":"failed")"));
  EXPECT_THAT(state, HasSubstr("ended the export too early"));
  Ask(Request("GET", "/api/v1/captures/01ABC/export", "format=pftrace&from=13&download=d2"));
  EXPECT_THAT(Ask(Request("GET", "/api/v1/downloads/d2")).body, HasSubstr("bad window"));
}

TEST_F(OperatorGatewayTest, DownloadsAreCancelledByThePageOrTheBrowser) {
  WebReply reply =
      Ask(Request("GET", "/api/v1/captures/01ABC/export", "format=parquet&download=d1"));
  ASSERT_EQ(reply.status, 200);
  EXPECT_EQ(Ask(Request("DELETE", "/api/v1/downloads/d1", "", "{}")).status, 200);
  reply.stream.reset();
  EXPECT_THAT(Ask(Request("GET", "/api/v1/downloads/d1")).body,
              HasSubstr(R"("state":"cancelled")"));
  reply = Ask(Request("GET", "/api/v1/captures/01ABC/export", "format=json&download=d2"));
  reply.stream.reset();
  EXPECT_THAT(Ask(Request("GET", "/api/v1/downloads/d2")).body,
              HasSubstr("the browser ended the download"));
  EXPECT_EQ(Ask(Request("DELETE", "/api/v1/downloads/none", "", "{}")).body,
            R"({"state":"unknown"})");
}

TEST_F(OperatorGatewayTest, EndedDownloadsAreForgottenFirst) {
  std::vector<WebReply> running;
  for (size_t i = 0; i < limits::kWebDownloadsMax; ++i) {
    running.push_back(Ask(Request("GET", "/api/v1/captures/01ABC/export",
                                  "format=json&download=d" + std::to_string(i))));
  }
  const WebRequest further =
      Request("GET", "/api/v1/captures/01ABC/export", "format=json&download=further");
  EXPECT_EQ(Ask(further).status, 429);
  WebStream::Next last;
  WholeBody(running[7], last);
  EXPECT_EQ(Ask(further).status, 200);
  EXPECT_THAT(Ask(Request("GET", "/api/v1/downloads/d7")).body, HasSubstr("unknown"));
  EXPECT_THAT(Ask(Request("GET", "/api/v1/downloads/d8")).body, HasSubstr("running"));
}

TEST_F(OperatorGatewayTest, ListsAndSendsArtifacts) {
  EXPECT_THAT(Ask(Request("GET", "/api/v1/captures/01ABC/artifacts")).body,
              HasSubstr("01ABC/model.neff"));
  EXPECT_EQ(Ask(Request("GET", "/api/v1/captures/01ABC/artifact", "sha256=00")).status, 404);
  WebReply reply =
      Ask(Request("GET", "/api/v1/captures/01ABC/artifact", "sha256=ab12&download=d1"));
  ASSERT_EQ(reply.status, 200);
  EXPECT_EQ(HeaderOf(reply, "Content-Disposition"), R"(attachment; filename="mo_del.neff")");
  WebStream::Next last;
  EXPECT_EQ(WholeBody(reply, last), "content");
  EXPECT_EQ(last, WebStream::Next::kFailed);
  const std::string state = Ask(Request("GET", "/api/v1/downloads/d1")).body;
  EXPECT_THAT(state, HasSubstr(R"("bytes":"7","bytes_total":"6")"));
  EXPECT_THAT(state, HasSubstr("the stored file is damaged"));
}

TEST_F(OperatorGatewayTest, ListsStandingExports) {
  EXPECT_THAT(Ask(Request("GET", "/api/v1/standing-exports")).body, HasSubstr("nightly"));
}

TEST_F(OperatorGatewayTest, ErrorsNameTheFix) {
  WebRequest foreign = Request("GET", "/api/v1/captures");
  foreign.host = "evil.example";
  EXPECT_THAT(Ask(foreign).body, HasSubstr(R"("hint":"Use 127.0.0.1)"));
  const auto nobody = v1::OperatorService::NewStub(
      grpc::CreateChannel("unix:/nobody/listens", grpc::InsecureChannelCredentials()));
  OperatorGateway lost(*nobody, assets_, OperatorGateway::Options{.token = kToken});
  EXPECT_THAT(lost.Handle(Request("GET", "/api/v1/agents")).body,
              HasSubstr("`neurontrace status`"));
}

// Adds what identifies the caller, as the aggregator's port does.
class Alice final : public WebCaller {
 public:
  void Identify(grpc::ClientContext& context) const override {
    context.AddMetadata("caller", "alice");
  }
};

TEST_F(OperatorGatewayTest, MakesCallsForACallerAndNamesItsRole) {
  const auto of_alice = gateway_->For(std::make_shared<Alice>(), {"alice", "operator"});
  EXPECT_THAT(of_alice->Answer(Request("GET", "/api/v1/session")).body,
              HasSubstr(R"("user":"alice","role":"operator","may":{"view":true,"start":true,)"
                        R"("stop":true,"edit":true,"delete":false)"));
  EXPECT_EQ(of_alice->Answer(Request("GET", "/api/v1/captures")).status, 200);
  EXPECT_EQ(service_.caller, "alice");
  EXPECT_EQ(Ask(Request("GET", "/api/v1/captures")).status, 200);
  EXPECT_EQ(service_.caller, "") << "the gateway itself has its connection's identity";
  gateway_->Stop();
  EXPECT_NE(of_alice->Answer(Request("GET", "/api/v1/captures")).status, 200);
}

TEST_F(OperatorGatewayTest, AViewerMayOnlyLook) {
  const auto viewer = gateway_->For(std::make_shared<Alice>(), {"eve", "viewer"});
  EXPECT_THAT(viewer->Answer(Request("GET", "/api/v1/session")).body,
              HasSubstr(R"("start":false,"stop":false,"edit":false,"delete":false,"export":true)"));
}

TEST_F(OperatorGatewayTest, StoppedGatewayEndsCalls) {
  gateway_->Stop();
  EXPECT_NE(Ask(Request("GET", "/api/v1/captures")).status, 200);
}

}  // namespace
}  // namespace neurontrace
