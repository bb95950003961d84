// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "neurontrace/v1/vocabulary.pb.h"

// Which workers a capture selects, as text, for lists of captures and for finding one by its job.
// Pure functions.
namespace neurontrace::cli {

// Returns "job llama, slurm=4711, ranks 0-7,64, instances i-a,i-b"; "" if it selects everything.
std::string FormatSelection(const v1::CaptureSpec& spec);

// Returns only its jobs: "llama slurm=4711"; "" if it names none.
std::string FormatJobs(const v1::CaptureSpec& spec);

// Returns whether the capture was asked for by this name of a job, in the form that --job accepts.
bool NamesJob(const v1::CaptureSpec& spec, const std::string& job);

// Returns whether it excludes no job.
bool IsOfEveryJob(const v1::CaptureSpec& spec);

}  // namespace neurontrace::cli
