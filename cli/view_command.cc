// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "cli/capture_view.h"
#include "cli/command.h"
#include "cli/interrupt_watcher.h"
#include "cli/record_programs.h"
#include "cli/shared_options.h"
#include "cli/store_aggregator.h"
#include "cli/text.h"
#include "lib/base/address.h"
#include "lib/base/clean_text.h"
#include "lib/base/json_writer.h"
#include "lib/base/random.h"
#include "lib/base/standard_streams.h"
#include "lib/base/status.h"
#include "lib/web/operator_gateway.h"
#include "lib/web/web_assets.h"
#include "lib/web/web_server.h"

namespace neurontrace::cli {
namespace {

// Of an address that the aggregator names.
constexpr size_t kUrlBytesMax = 2'048;
constexpr const char* kDefaultListen = "127.0.0.1:9403";

struct ViewOptions {
  std::string capture_id;
  std::string listen = kDefaultListen;
  bool is_listen_chosen = false;
  std::vector<std::string> hosts;
  std::string assets;
  bool is_shared = false;  // print the address of the aggregator's own page
  std::string store;       // serve this store; empty: the aggregator's
  ProgramPlaces places;
};

// Returns 256 random bits as hexadecimal digits: whoever knows them may use the operator's
// credentials.
std::string MakeToken() {
  SystemRandom random;
  std::string token;
  for (int i = 0; i < 4; ++i) token += fmt::format("{:016x}", random.Next64());
  return token;
}

// The page that is to be opened.
struct FoundPage {
  std::string path = "/";  // of the capture that the options name, or of the list
  std::string shared_url;  // of the page at the aggregator's port; empty: it serves none
};

// Asks the aggregator in any case, so that a wrong address is an error now and not an empty page.
grpc::Status FindPage(Context& context, const std::string& capture_id, FoundPage& found) {
  v1::GetStatusReply reply;
  {
    grpc::ClientContext call;
    SetDeadline(call, context);
    const grpc::Status status = context.stub().GetStatus(&call, {}, &reply);
    if (!status.ok()) return status;
  }
  found.shared_url = reply.view_url();
  if (capture_id.empty()) return grpc::Status::OK;
  grpc::ClientContext call;
  SetDeadline(call, context);
  v1::CaptureReference request;
  request.set_capture_id(capture_id);
  v1::Capture capture;
  const grpc::Status status = context.stub().GetCapture(&call, request, &capture);
  if (status.ok()) found.path = "/capture/" + capture.capture_id();
  return status;
}

// Prints the address for people or programs.
void PrintUrl(const Context& context, const std::string& url) {
  if (context.json) {
    Print("{}\n", JsonWriter().Open('{').Member("url", url).Close('}').Take());
  } else {
    Print("{}\n", url);
  }
  std::fflush(stdout);
}

// Prints the address of the page at the aggregator's port.
int PrintSharedPage(Context& context, const ViewOptions& options) {
  FoundPage found;
  const grpc::Status status = FindPage(context, options.capture_id, found);
  if (!status.ok()) return Fail(context, status);
  if (found.shared_url.empty()) {
    return Fail(FailedPrecondition(
        "the aggregator serves no page; omit --shared, or start it with --view-address "
        "(docs/user/view.md)"));
  }
  // "https://HOST/", without TLS "http://HOST/?token=TOKEN": the path goes before the query.
  const size_t query = std::min(found.shared_url.find('?'), found.shared_url.size());
  std::string url = found.shared_url.substr(0, query);
  if (url.ends_with('/')) url.pop_back();
  PrintUrl(context, CleanText(url + found.path + found.shared_url.substr(query), kUrlBytesMax));
  return kExitDone;
}

absl::StatusOr<WebAssets> AssetsOf(const ViewOptions& options) {
  if (options.assets.empty()) return WebAssets::BuiltIn();
  auto assets = WebAssets::ReadDirectory(options.assets);
  if (!assets.ok()) return WithOption("--web-assets", assets.status());
  return assets;
}

// Listens at the chosen address. The default port may be taken by another page, so any free one
// serves then.
absl::StatusOr<std::unique_ptr<WebServer>> Listen(const ViewOptions& options,
                                                  OperatorGateway& gateway) {
  auto server = WebServer::Start(options.listen, gateway);
  if (server.ok()) return server;
  if (options.is_listen_chosen) return DescribeListenFailure("--listen", server.status());
  return WebServer::Start("127.0.0.1:0", gateway);
}

// Serves the page until an interrupt.
int ServePage(Context& context, const ViewOptions& options) {
  if (!IsLoopback(options.listen)) {
    return FailUsage(InvalidArgument(
        "--listen {}: the page has no TLS and is only served on this machine; listen on "
        "127.0.0.1 and forward the port, for example with `ssh -L 9403:127.0.0.1:9403 HOST`",
        options.listen));
  }
  // Before any thread starts, as it forks.
  std::unique_ptr<StoreAggregator> own;
  if (!options.store.empty()) {
    auto started = StoreAggregator::Start(options.store, options.places);
    if (!started.ok()) return Fail(started.status());
    own = *std::move(started);
  }
  // Before any other thread starts, so that all of them leave the signals to the watcher.
  Interrupt interrupt;
  const InterruptWatcher watcher([&interrupt](int) { interrupt.Set(); });
  if (own != nullptr) {
    const auto address = own->WaitForAddress([&interrupt] { return interrupt.is_set(); });
    if (interrupt.is_set()) return kExitDone;
    if (!address.ok()) return Fail(address.status());
    // It is on loopback and has no certificates; those of the user are for the site's.
    context.aggregator = *address;
    context.security = {};
  }
  FoundPage found;
  const grpc::Status status = FindPage(context, options.capture_id, found);
  if (!status.ok()) return Fail(context, status);
  const auto assets = AssetsOf(options);
  if (!assets.ok()) return Fail(assets.status());
  const std::string token = MakeToken();
  OperatorGateway gateway(
      context.stub(), *assets,
      {.token = token,
       .hosts = options.hosts,
       .user = options.store.empty() ? fmt::format("the credentials for {}", context.aggregator)
                                     : "the store in " + options.store});
  const auto server = Listen(options, gateway);
  if (!server.ok()) return Fail(server.status());
  PrintUrl(context,
           fmt::format("http://127.0.0.1:{}{}?token={}", (*server)->port(), found.path, token));
  if (!context.quiet) {
    std::fprintf(stderr, "Open this address in a browser on this machine; Ctrl-C ends the page.\n");
    if (!found.shared_url.empty()) {
      std::fprintf(stderr, "The aggregator also serves a page: `view --shared` has its address.\n");
    }
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
  auto* const shared =
      command->add_flag("--shared", options->is_shared,
                        "Print the address of the page that the aggregator itself serves "
                        "(its --view-address), and exit");
  auto* const store = command->add_option(
      "--store", options->store,
      "Serve the store in this directory, on which no aggregator runs, by starting one for the "
      "time of the command");
  store->check(CLI::ExistingDirectory)->excludes(shared);
  AddStorePrograms(*command, options->places.programs);
  command->footer(
      "The address has a token: whoever has it acts with your credentials. That of --shared has "
      "none if the aggregator has TLS: sign in with your token or certificate.\n\n"
      "Examples:\n  neurontrace view\n  neurontrace view 01JD --aggregator aggregator:9400\n"
      "  neurontrace view 01JD --shared\n  neurontrace view --store /backup/neurontrace");
  command->callback([&context, &run, options, command] {
    options->is_listen_chosen = command->count("--listen") > 0;
    options->places.own_directory = OwnDirectory();
    run = [&context, options] {
      return options->is_shared ? PrintSharedPage(context, *options) : ServePage(context, *options);
    };
  });
}

}  // namespace neurontrace::cli
