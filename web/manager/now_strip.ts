// SPDX-License-Identifier: Apache-2.0
import {ApiClient} from '../api/api_client';
import {ApiError, describeError, isAbort} from '../api/api_error';
import {headline, judgedText} from '../model/insight';
import {InsightMessage} from '../model/insight_types';
import {sentences} from '../model/safe_text';
import {formatCount} from '../model/text_format';
import {element, replaceChildren} from '../widgets/dom';
import {verdictBadge} from '../widgets/verdict_parts';

const kPollMs = 2000;
const kPollOffMs = 15000;  // without a watch, and while nobody answers
const kListed = 5;

// The fleet's watch as it is now, in a strip above the captures: its verdicts, or how to switch it on. Asks while the
// page is visible, and hides where the aggregator has no such call or does not allow it.
export class NowStrip {
  readonly element = element('section', {class: 'now', 'aria-label': 'Now', hidden: true});
  private timer = 0;
  private abort: AbortController|null = null;
  private shown = '';

  constructor(private readonly api: ApiClient) {
    document.addEventListener('visibilitychange', this.onVisibility);
    void this.poll();
  }

  close(): void {
    document.removeEventListener('visibilitychange', this.onVisibility);
    this.stop();
  }

  private readonly onVisibility = (): void => {
    this.stop();
    if (document.visibilityState === 'visible') void this.poll();
  };

  private stop(): void {
    clearTimeout(this.timer);
    this.abort?.abort();
  }

  private async poll(): Promise<void> {
    const abort = this.abort = new AbortController();
    let wait: number|null = kPollMs;
    try {
      this.show(await this.api.whyNow(abort.signal));
    } catch (error) {
      if (isAbort(error)) return;
      wait = this.showProblem(error);
    }
    if (!abort.signal.aborted && wait !== null) this.timer = window.setTimeout(() => void this.poll(), wait);
  }

  // Returns when to ask again; null: never.
  private showProblem(error: unknown): number|null {
    const status = error instanceof ApiError ? error.status : -1;
    if ([401, 403, 404, 405, 501].includes(status)) {
      this.element.hidden = true;
      return null;
    }
    if (status === 409)
      this.fill('off', 'now off', 'No watch is on: ', element('code', {}, 'neurontrace watch on'));
    else
      this.fillError(describeError(error));
    return kPollOffMs;
  }

  private fillError({message, hint}: {message: string, hint: string}): void {
    this.fill(message, 'now off', `Now: not known. ${sentences(message, hint)}`);
  }

  private show(report: InsightMessage): void {
    const verdicts = report.verdicts ?? [], refusals = report.refusals?.length ?? 0,
          listed = verdicts.slice(0, kListed), more = verdicts.length - listed.length;
    const facts = [judgedText(report)];
    if (refusals) facts.push(`${formatCount(refusals)} ${refusals === 1 ? 'part' : 'parts'} not judged`);
    if (more > 0) facts.push(`${formatCount(more)} more: neurontrace why --live`);
    // Figures change with every answer; only what is named is read out.
    const key = JSON.stringify([verdicts.length, refusals, listed.map(({kind, text}) => [kind, text])]);
    const known = this.element.querySelector('.now-facts');
    if (key === this.shown && known) {
      known.textContent = facts.join(', ');
      return;
    }
    this.fill(
        key, 'now', element('strong', {role: 'status'}, `Now: ${headline(report)}`),
        element('span', {class: 'faint now-facts'}, facts.join(', ')),
        listed.length > 0 &&
            element(
                'ul', {},
                ...listed.map(
                    verdict => element('li', {}, verdictBadge(verdict), element('span', {}, verdict.text ?? '')))));
  }

  private fill(key: string, style: string, ...content: (Node|string|false)[]): void {
    this.element.hidden = false;
    if (key === this.shown) return;
    this.shown = key;
    this.element.className = style;
    replaceChildren(this.element, ...content);
  }
}
