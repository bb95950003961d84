// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "cli/capture_view.h"
#include "cli/command.h"
#include "cli/interrupt_watcher.h"
#include "cli/shared_options.h"
#include "cli/text.h"
#include "lib/base/address.h"
#include "lib/base/mutex.h"
#include "lib/base/random.h"
#include "lib/base/standard_streams.h"
#include "lib/base/status.h"
#include "lib/web/operator_gateway.h"
#include "lib/web/web_assets.h"
#include "lib/web/web_server.h"

namespace neurontrace::cli {
namespace {

constexpr const char* kDefaultListen = "127.0.0.1:9403";

struct ViewOptions {
  std::string capture_id;
  std::string listen = kDefaultListen;
  bool is_listen_chosen = false;
  std::vector<std::string> hosts;
  std::string assets;
};

// Returns 256 random bits as hexadecimal digits: whoever knows them may use the operator's
// credentials.
std::string MakeToken() {
  SystemRandom random;
  std::string token;
  for (int i = 0; i < 4; ++i) token += fmt::format("{:016x}", random.Next64());
  return token;
}

// Returns the id of the capture that the options name, in full, or "" if they name none. Asks the
// aggregator in any case, so that a wrong address is an error now and not an empty page.
absl::StatusOr<std::string> FindCapture(Context& context, const std::string& text) {
  grpc::ClientContext call;
  SetDeadline(call, context);
  grpc::Status status;
  v1::Capture capture;
  if (text.empty()) {
    v1::GetStatusReply reply;
    status = context.stub().GetStatus(&call, {}, &reply);
  } else {
    v1::CaptureReference request;
    request.set_capture_id(text);
    status = context.stub().GetCapture(&call, request, &capture);
  }
  if (!status.ok()) {
    return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
  }
  return capture.capture_id();
}

absl::StatusOr<WebAssets> AssetsOf(const ViewOptions& options) {
  if (options.assets.empty()) return WebAssets::BuiltIn();
  return WebAssets::ReadDirectory(options.assets);
}

// Listens at the chosen address. The default port may be taken by another page, so any free one
// serves then.
absl::StatusOr<std::unique_ptr<WebServer>> Listen(const ViewOptions& options,
                                                  OperatorGateway& gateway) {
  auto server = WebServer::Start(options.listen, gateway);
  if (server.ok() || options.is_listen_chosen) return server;
  return WebServer::Start("127.0.0.1:0", gateway);
}

// Waits for SIGINT or SIGTERM.
class Interrupt {
 public:
  void Set() {
    const MutexLock lock(mutex_);
    is_set_ = true;
    set_.NotifyAll();
  }
  void Wait() {
    MutexLock lock(mutex_);
    set_.Wait(mutex_, [this]() NT_REQUIRES(mutex_) { return is_set_; });
  }

 private:
  Mutex mutex_;
  CondVar set_;
  bool is_set_ NT_GUARDED_BY(mutex_) = false;
};

// Serves the page until an interrupt.
int ServePage(Context& context, const ViewOptions& options) {
  if (!IsLoopback(options.listen)) {
    return FailUsage(InvalidArgument(
        "--listen {}: the page has no TLS and is only served on this machine; listen on "
        "127.0.0.1 and forward the port, for example with `ssh -L 9403:127.0.0.1:9403 HOST`",
        options.listen));
  }
  // Before any thread starts, so that all of them leave the signals to the watcher.
  Interrupt interrupt;
  const InterruptWatcher watcher([&interrupt](int) { interrupt.Set(); });
  const auto id = FindCapture(context, options.capture_id);
  if (!id.ok()) {
    return Fail(context, grpc::Status(static_cast<grpc::StatusCode>(id.status().code()),
                                      std::string(id.status().message())));
  }
  const auto assets = AssetsOf(options);
  if (!assets.ok()) return Fail(assets.status());
  const std::string token = MakeToken();
  OperatorGateway gateway(context.stub(), *assets,
                          {.token = token,
                           .hosts = options.hosts,
                           .user = fmt::format("the credentials for {}", context.aggregator)});
  const auto server = Listen(options, gateway);
  if (!server.ok()) return Fail(server.status());
  const std::string url = fmt::format("http://127.0.0.1:{}{}?token={}", (*server)->port(),
                                      id->empty() ? "/" : "/capture/" + *id, token);
  if (context.json) {
    Print("{{\"url\":\"{}\"}}\n", url);
  } else {
    Print("{}\n", url);
  }
  std::fflush(stdout);
  if (!context.quiet) {
    std::fprintf(stderr, "Open this address in a browser on this machine; Ctrl-C ends the page.\n");
  }
  interrupt.Wait();
  // Calls that wait for the aggregator would keep the server from ending.
  gateway.Stop();
  return kExitDone;
}

}  // namespace

void AddViewCommand(CLI::App& app, Context& context, Run& run) {
  auto options = std::make_shared<ViewOptions>();
  CLI::App* command =
      app.add_subcommand("view", "Show captures and their timelines in a browser, until Ctrl-C");
  command->add_option("capture", options->capture_id,
                      "Open the timeline of this capture: its id, or a unique prefix (default: the "
                      "list of captures)");
  command
      ->add_option("--listen", options->listen,
                   "HOST:PORT of the page, on the loopback interface (default: 127.0.0.1:9403, or "
                   "a free port if that is taken)")
      ->check([](const std::string& address) { return CheckAddress(address); });
  command->add_option("--host", options->hosts,
                      "Accept this host name in the address, for a forwarded port");
  command->add_option("--web-assets", options->assets,
                      "Serve the page from this directory instead of the built-in one, while "
                      "developing it");
  command->footer(
      "The address has a token: whoever has it acts with your credentials.\n\n"
      "Examples:\n  neurontrace view\n  neurontrace view 01JD --aggregator aggregator:9400");
  command->callback([&context, &run, options, command] {
    options->is_listen_chosen = command->count("--listen") > 0;
    run = [&context, options] { return ServePage(context, *options); };
  });
}

}  // namespace neurontrace::cli
