// SPDX-License-Identifier: Apache-2.0
import {ApiClient, Query} from '../api/api_client';
import {describeError, isAbort} from '../api/api_error';
import {Insight} from '../model/insight';

import {TimelineState} from './timeline_state';

// Asks for the verdicts of the stretch that the state names, one question at a time: a new one cancels the one before.
export class VerdictLoader {
  isLoading = false;
  problem: {message: string, hint: string}|null = null;
  private abort: AbortController|null = null;

  constructor(private readonly api: ApiClient, private readonly state: TimelineState, private readonly owner: {
    verdictsChanged(): void
  }) {}

  close(): void {
    this.abort?.abort();
  }

  // `why`: "all" or "from.to", as in the address. The chosen verdict stays chosen if the page was opened with it.
  ask(why: string, job: string, verdict = -1): void {
    const {state} = this;
    state.why = why;
    state.whyJob = job;
    state.verdict = verdict;
    void this.load();
  }

  private async load(): Promise<void> {
    const {state} = this, abort = new AbortController(), [from, to] = state.why.split('.'), query: Query = {};
    this.abort?.abort();
    this.abort = abort;
    if (to !== undefined) Object.assign(query, {from, to});
    if (state.whyJob) query.job = state.whyJob;
    this.isLoading = true;
    this.problem = null;
    state.insight = null;
    this.owner.verdictsChanged();
    try {
      const report = await this.api.why(state.captureId, query, abort.signal);
      if (this.abort !== abort) return;
      state.insight = new Insight(report, state.layout, state.base);
      state.insightVersion = state.layout.version;
      if (state.verdict >= state.insight.verdicts.length) state.verdict = -1;
    } catch (error) {
      if (isAbort(error) || this.abort !== abort) return;
      this.problem = describeError(error);
    }
    this.isLoading = false;
    this.owner.verdictsChanged();
  }
}
