// SPDX-License-Identifier: Apache-2.0
import {ApiClient} from '../api/api_client';
import {describeError} from '../api/api_error';
import {Capture, Session} from '../api/api_types';
import {CaptureLayout} from '../model/capture_layout';
import {mayChangeRetention, retentionText} from '../model/retention';
import {formatBytes, formatCount, formatDuration, formatUtc} from '../model/text_format';
import {parseCount, TimeBase} from '../model/time_base';
import {copyLine} from '../widgets/copy_line';
import {button, element, iconButton, notice, replaceChildren} from '../widgets/dom';
import {Navigation, Page} from '../widgets/navigation';
import {Theme} from '../widgets/theme';
import {Toasts} from '../widgets/toasts';

import {artifactSection} from './artifact_section';
import {CaptureActions} from './capture_actions';
import {CaptureFacts} from './capture_facts';
import {link} from './captures_table';
import {certificateSection} from './certificate_section';
import {DownloadList} from './download_list';
import {ExportSection} from './export_section';
import {HostSection} from './host_section';
import {whySection} from './why_section';

// One capture: what it is, how complete it is, its hosts, exports and artifacts. Each part says for itself why it is
// empty or cannot be shown, so that one failed request leaves the others.
export class CapturePage implements Page {
  readonly element = element('div', {class: 'manager'});
  private readonly body = element('main', {class: 'capture-body'});
  private readonly title = element('h1', {}, 'Capture');
  private readonly downloads: DownloadList;
  private readonly actions: CaptureActions;
  private hosts: HostSection|null = null;
  private readonly abort = new AbortController();
  private closed = false;

  constructor(
      private readonly api: ApiClient, toasts: Toasts, private readonly navigation: Navigation, theme: Theme,
      session: Session, account: HTMLElement, private readonly id: string) {
    this.downloads = new DownloadList(api);
    this.actions = new CaptureActions(api, toasts, session, {refresh: () => void this.load()});
    this.element.append(
        element(
            'header', {class: 'top-bar'}, link(navigation, '/', '‹ Captures'), this.title,
            element('span', {class: 'id'}, id), element('span', {class: 'grow'}),
            link(navigation, `/capture/${encodeURIComponent(id)}`, 'Timeline'), account,
            iconButton('refresh', 'Refresh', () => void this.load()),
            iconButton('theme', 'Light or dark', () => theme.toggle())),
        this.body);
    void this.load();
  }

  close(): void {
    this.closed = true;
    this.abort.abort();
    this.hosts?.close();
    this.downloads.close();
  }

  private async load(): Promise<void> {
    replaceChildren(this.body, notice('loading', 'Adding up the capture’s accounts'));
    try {
      const capture = await this.api.capture(this.id);
      if (!this.closed) await this.show(capture);
    } catch (error) {
      if (this.closed) return;
      const {message, hint} = describeError(error);
      replaceChildren(
          this.body,
          notice(
              'error', `The capture cannot be shown: ${message}`, hint, button('Try again', () => void this.load()),
              button('All captures', () => this.navigation.go('/'))));
    }
  }

  private async show(capture: Capture): Promise<void> {
    const facts = new CaptureFacts(capture);
    replaceChildren(this.title, facts.title);
    const why = element('div'), hosts = element('div'), exports = element('div'), artifacts = element('div');
    for (const part of [why, exports, hosts, artifacts]) replaceChildren(part, notice('loading', 'Loading'));
    replaceChildren(
        this.body, factSection(facts, this.actions), why, certificateSection(capture.certificate ?? {}), exports, hosts,
        artifacts);
    await Promise.all([
      this.showLayout(hosts, exports),
      this.showPart(
          why, 'The ranks were not judged',
          async () => whySection(this.navigation, facts.id, await this.api.why(facts.id, {}, this.abort.signal))),
      this.showPart(
          artifacts, 'The artifacts were not listed',
          async () => artifactSection(this.api, facts.id, await this.api.artifacts(facts.id), this.downloads)),
    ]);
  }

  // Hosts and exports need the capture's times; without them exports are of the whole capture.
  private async showLayout(hosts: HTMLElement, exports: HTMLElement): Promise<void> {
    const showExports = (base: TimeBase|null, layout: CaptureLayout|null): void =>
        replaceChildren(exports, new ExportSection(this.api, this.id, base, layout, this.downloads).element);
    await this.showPart(hosts, 'The hosts were not read', async () => {
      let json: Record<string, unknown>;
      try {
        json = await this.api.layout(this.id);
      } catch (error) {
        showExports(null, null);
        throw error;
      }
      const base = new TimeBase(json.begin_ns), layout = new CaptureLayout(json, base);
      showExports(base, layout);
      this.hosts?.close();
      this.hosts = new HostSection(this.api, this.id, base, layout);
      return this.hosts.element;
    });
  }

  private async showPart(place: HTMLElement, failure: string, make: () => Promise<HTMLElement>): Promise<void> {
    try {
      const made = await make();
      if (!this.closed) replaceChildren(place, made);
    } catch (error) {
      if (this.closed) return;
      const {message, hint} = describeError(error);
      replaceChildren(place, notice('error', `${failure}: ${message}`, hint, button('Try again', () => {
                                      replaceChildren(place, notice('loading', 'Loading'));
                                      void this.showPart(place, failure, make);
                                    })));
    }
  }
}

function factSection(facts: CaptureFacts, actions: CaptureActions): HTMLElement {
  const {capture, retention} = facts;
  const entries: [string, string][] = [
    ['State', facts.stateText],
    ['Job', facts.job || 'any'],
    ['Started', `${formatUtc(facts.startedNs)} UTC`],
    ['Duration', formatDuration(facts.durationNs)],
    ['Ranks', formatCount(facts.ranks)],
    ['Events', formatCount(facts.events)],
    ['Size', formatBytes(facts.bytes)],
    ['Expired events', parseCount(capture.eventsExpired) ? formatCount(parseCount(capture.eventsExpired)) : ''],
    ['Started by', capture.spec?.cause ?? ''],
    ['Tags', facts.tags.join(', ')],
  ];
  const list = element('dl', {class: 'facts'});
  for (const [key, value] of entries)
    if (value) list.append(element('dt', {}, key), element('dd', {}, value));
  const change = actions.mayEdit && mayChangeRetention(retention) &&
      button('Change…', () => actions.keep(facts), {class: 'plain', title: 'Change how long the capture is kept'});
  list.append(element('dt', {}, 'Kept'), element('dd', {}, retentionText(retention), ' ', change));
  return element(
      'section', {'aria-labelledby': 'facts-title'}, element('h2', {id: 'facts-title'}, 'Capture'), list,
      copyLine(`neurontrace captures show ${facts.id}`, 'shows the same in a terminal').element,
      ...(capture.warnings ?? []).map(text => element('p', {class: 'faint'}, text)));
}
