// SPDX-License-Identifier: Apache-2.0
import {ApiClient} from '../api/api_client';
import {ApiError, describeError} from '../api/api_error';
import {EventEntry, LinksReply} from '../api/api_types';
import {DigestProgress} from '../model/digest_progress';
import {formatRanges} from '../model/number_ranges';
import {fileName, safeText, sentences} from '../model/safe_text';
import {SpanTile} from '../model/span_tile';
import {formatBytes, formatState} from '../model/text_format';
import {kGroupings} from '../model/track_kinds';
import {formatViewState, kPicksMax, parseViewState} from '../model/view_state';
import {download, element, notice, replaceChildren} from '../widgets/dom';
import {MenuItem} from '../widgets/menu';
import {askText, Modal} from '../widgets/modal';
import {Navigation, Page} from '../widgets/navigation';
import {Theme} from '../widgets/theme';
import {Toasts} from '../widgets/toasts';

import {kBlockStreams} from './block_loader';
import {DetailsPanel} from './details_panel';
import {Dock} from './dock';
import {FilterBox} from './filter_box';
import {HeatPanel} from './heat_panel';
import {KeyActions, KeyBindings, kKeyHelp} from './key_bindings';
import {LayoutRefresher} from './layout_refresher';
import {LiveWatch, WatchUpdate} from './live_watch';
import {MarkersPanel} from './markers_panel';
import {PerfettoHandOver} from './perfetto';
import {PointerTools} from './pointer_tools';
import {SearchPanel} from './search_panel';
import {SelectionPanel} from './selection_panel';
import {Stage} from './stage';
import {TablePanel} from './table_panel';
import {Box, ChosenSpan, Pick, TimelineHost} from './timeline_host';
import {TimelineState} from './timeline_state';
import {TopBar, TopBarActions} from './top_bar';
import {VerdictLoader} from './verdict_loader';
import {WhyPanel} from './why_panel';

// Browsers allow about 100 changes of the address in 30 s, and one takes as long as a frame: it is written when the
// view rests, and while it moves only now and then.
const kUrlPauseMs = 400, kUrlMovingMs = 3000;
// Placing 60,000 rows takes longer than a frame, so that rows of several answers are placed together.
const kRebuildPauseMs = 150;
const kOverviewPx = 512, kOverviewPauseMs = 5000;

// The timeline of one capture: owns its parts, and carries out what they ask for.
export class TimelinePage implements Page, TimelineHost, KeyActions, TopBarActions {
  readonly element = element('div', {class: 'timeline-page'});
  readonly verdicts: VerdictLoader;
  private readonly stage: Stage;
  private readonly pointer: PointerTools;
  private readonly keys: KeyBindings;
  private readonly details: DetailsPanel;
  private readonly dock: Dock;
  private readonly search: SearchPanel;
  private readonly markers: MarkersPanel;
  private readonly why: WhyPanel;
  private readonly table: TablePanel;
  private readonly topBar: TopBar;
  private readonly filter: FilterBox;
  private readonly perfetto: PerfettoHandOver;
  private watch: LiveWatch|null = null;
  private followProblem = '';  // why the page does not follow a running capture
  private urlTimer = 0;
  private urlSince = 0;  // since when the address is not that of the view
  private viewedAt = 0;  // when the view changed last
  private rebuildTimer = 0;
  private rebuiltAt = 0;
  private readonly refresher = new LayoutRefresher(() => this.refreshLayout());
  private readonly digests = new DigestProgress();
  private overviewAt = 0;
  private isOverviewLoading = false;
  // Of an address that names a verdict and no window; -1: none.
  private verdictToShow: number;
  private readonly notes = element('div', {class: 'warnings', hidden: true});
  private closed = false;

  constructor(
      readonly api: ApiClient, readonly toasts: Toasts, private readonly navigation: Navigation, theme: Theme,
      account: HTMLElement, readonly state: TimelineState) {
    const view = parseViewState(location.search);
    this.verdictToShow = view.from ? -1 : view.verdict;
    state.restore(view, !location.search);
    this.verdicts = new VerdictLoader(api, state, this);
    this.stage = new Stage(this, this);
    this.pointer = new PointerTools(this, this.stage);
    this.keys = new KeyBindings(this, this.stage, this.pointer, this);
    this.search = new SearchPanel(this);
    this.markers = new MarkersPanel(this);
    this.why = new WhyPanel(this);
    this.details = new DetailsPanel(this);
    this.table = new TablePanel(this, this.stage, this.pointer);
    this.perfetto = new PerfettoHandOver(api);
    this.topBar = new TopBar(this, this.search.box, theme, account, this);
    this.filter = new FilterBox(this);
    this.stage.corner.appendChild(this.filter.element);
    const panel = state.panel;
    this.dock = new Dock(
        [this.details, new SelectionPanel(this), this.search, this.why, new HeatPanel(this), this.markers, this.table],
        this);
    this.element.append(
        this.topBar.element, this.notes,
        element('main', {class: 'timeline-main'}, this.stage.element, this.dock.element));
    this.tracksChanged();
    this.stage.topUnit = view.top;
    if (state.query) this.search.search(state.query, true);
    if (state.why) this.verdicts.ask(state.why, state.whyJob, state.verdict);
    void this.loadOverview();
    this.dock.show(panel);
    this.showNotes(!state.layout.live);
    if (state.layout.live)
      this.watch = new LiveWatch(api, state.captureId, this);
    else
      void this.loadEnd();
  }

  close(): void {
    this.closed = true;
    this.keys.close();
    this.stage.close();
    this.watch?.close();
    this.refresher.close();
    this.verdicts.close();
    clearTimeout(this.urlTimer);
    clearTimeout(this.rebuildTimer);
  }

  saveView(): void {
    if (this.urlTimer !== 0) this.writeUrl();
  }

  // --- TimelineHost

  viewChanged(): void {
    if (!this.stage) return;
    this.stage.invalidate(true, true);
    if (this.dock && (this.dock.shown === 'table' || this.dock.shown === 'markers')) this.dock.update();
    this.rememberView();
  }

  tracksChanged(): void {
    this.state.tree.build();
    this.stage.tracksChanged();
    this.filter.update();
    this.viewChanged();
  }

  overlayChanged(): void {
    this.stage.invalidate(false);
  }

  chooseSpan(span: ChosenSpan|null): void {
    this.state.span = span;
    this.state.event = null;
    this.state.links = null;
    this.overlayChanged();
    this.rememberView();
    const wasOpen = this.dock.shown !== '';
    if (span && this.dock.shown !== 'search' && this.dock.shown !== 'why')
      this.dock.show('details');
    else
      this.dock.update();
    // The panel that opens must not cover what was clicked.
    if (span && !wasOpen) requestAnimationFrame(() => this.showTrackOf(span));
  }

  chooseBox(box: Box|null): void {
    if (!box && !this.state.box && !this.state.picks.length) return;
    this.state.box = box;
    this.state.picks = [];
    this.overlayChanged();
    this.rememberView();
    if (box)
      this.dock.show(this.dock.shown === 'why' ? 'why' : 'selection');
    else
      this.dock.update();
  }

  pick(picks: Pick[]): void {
    const {state} = this;
    for (const pick of picks) {
      const at = state.picks.findIndex(
          other => other.stream === pick.stream && other.row === pick.row && other.from === pick.from &&
              other.name === pick.name);
      if (at >= 0)
        state.picks = state.picks.filter((_, i) => i !== at);
      else if (state.picks.length >= kPicksMax)
        this.toasts.say(`A selection has at most ${kPicksMax} spans; drag a box for more.`);
      else
        state.picks = [...state.picks, pick];
    }
    if (state.picks.length) state.box = null;
    this.overlayChanged();
    this.rememberView();
    if (state.picks.length)
      this.dock.show('selection');
    else
      this.dock.update();
  }

  detailsArrived(event: EventEntry|null): void {
    this.state.event = event;
    this.overlayChanged();
    this.rememberView();  // with the id
  }

  linksArrived(links: LinksReply|null): void {
    this.state.links = links;
    this.overlayChanged();
  }

  reveal(stream: number, row: number, from: number, to: number): void {
    this.state.tree.reveal(stream, row);
    this.state.viewport.reveal(from, to);
    this.tracksChanged();
    this.showTrackOf({stream, row});
    this.viewChanged();
  }

  private showTrackOf({stream, row}: {stream: number, row: number}): void {
    const track = this.state.tree.find(stream, row);
    if (track && !track.pinned) this.stage.showUnits(this.state.tree.topOf(track), track.units);
  }

  openPanel(name: string): void {
    if (this.dock.shown !== name) this.dock.show(name);
  }

  find(query: string): void {
    this.search.search(query);
  }

  setTool(tool: number): void {
    this.state.tool = tool;
    this.topBar.update();
    this.rememberView();
  }

  panelChanged(name: string): void {
    this.state.panel = name;
    this.rememberView();
  }

  // --- answers

  verdictsChanged(): void {
    if (!this.dock) return;
    const {insight} = this.state, verdicts = insight?.verdicts.length ?? 0;
    this.dock.badge(
        'why', insight ? String(verdicts) : '',
        insight ? `${verdicts} ${verdicts === 1 ? 'verdict' : 'verdicts'}` : '');
    if (this.dock.shown === 'why' || this.dock.shown === 'heat') this.dock.update();
    this.overlayChanged();
    this.rememberView();
    const toShow = this.verdictToShow;
    if (insight) this.verdictToShow = -1;
    if (insight && toShow >= 0 && toShow < verdicts) this.why.showVerdict(toShow);
  }

  tileArrived(tile: SpanTile): void {
    this.digests.learn(tile, this.state.layout);
    this.topBar.showDigests(this.digests.text);
    this.stage.minimap.learn(tile);
    if (this.state.tree.learnRows(tile) && this.rebuildTimer === 0) {
      const wait = this.rebuiltAt + kRebuildPauseMs - performance.now();
      this.rebuildTimer = window.setTimeout(() => this.rebuildTree(), Math.max(0, wait));
    }
    // Streams, ranks or clocks changed since the layout was read.
    if (tile.version && tile.version !== this.state.layout.version) this.refresher.request();
    this.stage.invalidate(true);
    if (this.dock.shown === 'table') this.dock.update();
  }

  // Shows rows that answers brought.
  private rebuildTree(): void {
    this.rebuildTimer = 0;
    this.state.tree.rebuild();
    this.rebuiltAt = performance.now();
    this.stage.tracksChanged();
    this.filter.update();
    this.stage.invalidate(true);
  }

  loadingChanged(): void {
    const {loader} = this.stage, {problem} = loader;
    if (problem)
      this.stage.showLoading(sentences(problem.message, problem.hint), 'error');
    else if (this.followProblem)
      this.stage.showLoading(this.followProblem, 'error');
    else if (loader.isLoading)
      this.stage.showLoading('Loading…', 'loading');
    else
      this.stage.showLoading(sentences(this.stage.cutText), 'note');
  }

  cutChanged(): void {
    this.loadingChanged();
  }

  captureChanged(update: WatchUpdate): void {
    const {layout, base} = this.state,
                   isSame = update.version === layout.version && base.relative(update.endNs) <= layout.end;
    if (isSame && update.state === layout.state) return;
    this.refresher.request();
  }

  watchRefused(): void {
    this.followProblem ||=
        'New events are not shown: the aggregator is away, or too many pages follow captures. The page tries again.';
    this.loadingChanged();
    this.refresher.request();
  }

  watchOpened(): void {
    this.followProblem = '';
    this.loadingChanged();
  }

  // Of the refresher.
  private async refreshLayout(): Promise<void> {
    const {state} = this, before = state.layout.end;
    try {
      const json = await this.api.layout(state.captureId);
      if (this.closed) return;
      state.updateLayout(json);
      if (!this.watch || this.watch.isOpen) this.followProblem = '';
    } catch (error) {
      if (!this.closed) this.failToFollow(error);
      return;
    }
    if (state.follow && state.layout.end > before) {
      const {span} = state.viewport;
      state.viewport.show(state.layout.end - span * 0.95, state.layout.end + span * 0.05);
    }
    if (state.layout.end > before) void this.loadOverview();
    if (!state.layout.live) {
      this.watch?.close();
      this.watch = null;
      this.followProblem = '';
      state.follow = false;
      void this.loadEnd();
    }
    this.loadingChanged();
    this.topBar.update();
    if (this.dock.shown === 'why') this.dock.update();
    this.tracksChanged();
  }

  private failToFollow(error: unknown): void {
    const {message, hint} = describeError(error);
    if (error instanceof ApiError && error.status === 404) {
      this.watch?.close();
      this.watch = null;
      this.followProblem = sentences(message, 'Nothing further of it can be shown; it may have been deleted');
    } else {
      this.followProblem = sentences(`new events are not shown: ${message}`, hint);
    }
    this.loadingChanged();
  }

  // The layout says that a capture has ended, and not whether it is complete.
  private async loadEnd(): Promise<void> {
    try {
      const {state, certificate} = await this.api.capture(this.state.captureId);
      if (this.closed) return;
      this.topBar.showEnd({state: formatState(state), verdict: safeText(certificate?.verdict ?? '', 500)});
      this.showNotes(state === 'CAPTURE_STATE_COMPLETE');
    } catch {
      // The page *About* shows why the capture cannot be read; here it is just `ended`.
    }
  }

  // The minimap needs the whole capture, which the window may not show. It takes the first block of streams.
  private async loadOverview(): Promise<void> {
    const {state} = this, {layout, viewport, base} = state, now = performance.now();
    if (!layout.streams.length || layout.end <= layout.begin || this.isOverviewLoading || now < this.overviewAt ||
        (!layout.live && viewport.span > (layout.end - layout.begin) * 0.5))
      return;
    this.isOverviewLoading = true;
    const streams = layout.streams.slice(0, kBlockStreams).map(stream => stream.number).join(',');
    try {
      const answer = await this.api.spans(
          state.captureId, {from: base.absolute(layout.begin), to: base.absolute(layout.end), px: kOverviewPx, streams},
          new AbortController().signal);
      const tile = new SpanTile(answer, base, state.names);
      if (this.closed) return;
      this.stage.minimap.forget();
      state.store.add(0, tile, (layout.end - layout.begin) / kOverviewPx, layout.version);
      this.tileArrived(tile);
    } catch {
      // The minimap stays empty; what keeps the aggregator from answering is shown for the window itself.
    } finally {
      this.isOverviewLoading = false;
      this.overviewAt = performance.now() + kOverviewPauseMs;
    }
  }

  // --- KeyActions and TopBarActions

  showHelp(): void {
    const modal = new Modal('Keys');
    const list = element('dl', {class: 'keys'});
    for (const [key, what] of kKeyHelp) list.append(element('dt', {}, key), element('dd', {}, what));
    modal.body.appendChild(list);
    modal.open();
  }

  fit(): void {
    this.state.viewport.showAll();
    this.viewChanged();
  }

  fitSelection(): void {
    const {box, viewport} = this.state, chosen = box ?? this.picked() ?? this.state.span;
    if (!chosen) return this.toasts.say('Nothing is selected: click a span or drag a box.');
    const margin = Math.max(20, (chosen.to - chosen.from) * 0.05);
    viewport.show(chosen.from - margin, chosen.to + margin);
    this.viewChanged();
  }

  // The time from the first to the last picked span.
  private picked(): {from: number, to: number}|null {
    const {picks} = this.state;
    if (!picks.length) return null;
    return {
      from: Math.min(...picks.map(pick => pick.from)),
      to: Math.max(...picks.map(pick => pick.from + pick.duration))
    };
  }

  markSelection(): void {
    const chosen = this.state.box ?? this.picked() ?? this.state.span;
    if (chosen && chosen.to > chosen.from) {
      this.markers.add(chosen.from);
      this.markers.add(chosen.to);
    } else {
      this.markers.add(this.pointer.time);
    }
    this.dock.show('markers');
  }

  focusSearch(): void {
    this.search.input.focus();
    this.search.input.select();
  }

  nextHit(step: number): void {
    this.search.step(step);
  }

  // The previous or next span in the row of the chosen one, of those that are drawn.
  moveChosen(step: number): void {
    const {span} = this.state, {list} = this.stage.painter;
    let best: ChosenSpan|null = null;
    for (let i = 0; i < list.count; ++i) {
      const other = this.pointer.spanOf(i);
      if (span && (other.stream !== span.stream || other.row !== span.row || (other.from - span.from) * step <= 0))
        continue;
      if (!best || (other.from - best.from) * step < 0) best = other;
    }
    if (!best) return;
    this.chooseSpan(best);
    this.reveal(best.stream, best.row, best.from, Math.min(best.to, best.from + this.state.viewport.span / 2));
  }

  followChain(upstream: boolean): void {
    this.openPanel('details');
    this.details.followChain(upstream);
  }

  showWhy(): void {
    this.openPanel('why');
    this.why.focus();
  }

  toggleBands(): void {
    this.state.bands = !this.state.bands;
    if (!this.state.why) this.verdicts.ask('all', '');
    this.verdictsChanged();
  }

  nextGrouping(): void {
    const at = kGroupings.findIndex(([name]) => name === this.state.tree.grouping);
    this.filter.group(kGroupings[(at + 1) % kGroupings.length][0]);
  }

  escape(): void {
    if (this.dock.shown) return this.dock.show('');
    this.chooseSpan(null);
    this.chooseBox(null);
  }

  showManager(): void {
    this.navigation.go('/');
  }

  showAbout(): void {
    this.navigation.go(`/capture/${encodeURIComponent(this.state.captureId)}/about`);
  }

  setFollow(follow: boolean): void {
    const {state} = this;
    state.follow = follow;
    if (follow)
      state.viewport.show(state.layout.end - state.viewport.span * 0.95, state.layout.end + state.viewport.span * 0.05);
    this.topBar.update();
    this.viewChanged();
  }

  exportItems(): MenuItem[] {
    const {state, api} = this, {from, to} = this.windowQuery();
    const file = (label: string, format: string, hint: string): MenuItem => ({
      label,
      hint,
      action: () => {
        // With the attribute an error is a failed download, and the page stays.
        element('a', {href: api.exportAddress(state.captureId, {from, to, format}), download: ''}).click();
      }
    });
    return [
      {label: 'Open in Perfetto', hint: 'the visible window and ranks', action: () => void this.openInPerfetto()},
      {label: 'Perfetto’s address…', hint: this.perfetto.address, action: () => this.askAddress()},
      file('Window as Perfetto trace', 'pftrace', '.pftrace'),
      file('Window as Chrome trace', 'chrome-json', '.json'),
      file('Window as JSON', 'json', '.json'),
      file('Summary', 'summary-text', '.txt'),
      {label: 'Other formats…', hint: 'with progress', action: () => this.showAbout()},
      {
        label: 'Table of the view',
        hint: '.csv',
        action: () =>
            download(fileName(`${state.layout.name}_view`, '.csv'), new Blob([this.table.csv()], {type: 'text/csv'}))
      },
      {label: 'Picture of the view', hint: '.png', action: () => this.savePicture()},
      {label: 'Copy link to this view', action: () => void this.copyLink()},
    ];
  }

  // --- export

  private windowQuery(): {from: string, to: string, streams?: string} {
    const {state} = this, {viewport, base, layout} = state;
    const shown = this.pointer.shownStreams();
    const isAll = shown.length >= layout.streams.length || shown.length === 0;
    return {
      from: base.absolute(Math.max(layout.begin, viewport.from)),
      to: base.absolute(Math.min(layout.end + 1, viewport.to)),
      ...(isAll ? {} : {streams: formatRanges(shown)})
    };
  }

  private async openInPerfetto(): Promise<void> {
    try {
      const {bytes} = await this.perfetto.open(
          this.state.captureId, this.windowQuery(), this.state.layout.name || this.state.captureId);
      this.toasts.say(`Perfetto has the visible window: ${formatBytes(bytes)}.`);
    } catch (error) {
      this.toasts.fail('Perfetto was not opened', error);
    }
  }

  private askAddress(): void {
    askText(
        'Perfetto’s address',
        'Closed networks serve Perfetto’s page themselves. The trace goes from this browser to that page, ' +
            'and nowhere else.',
        'Address', this.perfetto.address, 'Save', null, text => {
          try {
            this.perfetto.address = text;
          } catch (error) {
            this.toasts.fail('The address is not saved', error);
          }
        });
  }

  private savePicture(): void {
    const {painter, overlay, ruler, visible} = this.stage, {canvas, scale} = painter, tree = Math.round(220 * scale),
                                    head = ruler.canvas.height;
    const picture = element('canvas');
    picture.width = tree + canvas.width;
    picture.height = head + canvas.height;
    const ctx = picture.getContext('2d')!, style = getComputedStyle(document.documentElement);
    ctx.fillStyle = style.getPropertyValue('--panel');
    ctx.fillRect(0, 0, picture.width, picture.height);
    ctx.drawImage(ruler.canvas, tree, 0);
    ctx.drawImage(canvas, tree, head);
    ctx.drawImage(overlay.canvas, tree, head);
    ctx.fillStyle = style.getPropertyValue('--text');
    ctx.font = `${Math.round(11 * scale)}px system-ui, sans-serif`;
    ctx.textBaseline = 'middle';
    for (let i = 0; i < visible.count; ++i) {
      const track = visible.tracks[i], indent = (12 * track.level - 6) * scale;
      ctx.fillText(track.label, indent, head + (visible.unit[i] + 0.5) * painter.unitPx, tree - indent - 4);
    }
    picture.toBlob(blob => {
      if (blob) download(fileName(this.state.layout.name, '.png'), blob);
    });
  }

  private async copyLink(): Promise<void> {
    this.writeUrl();
    try {
      await navigator.clipboard.writeText(location.href);
      this.toasts.say('The link is copied. It opens this view.');
    } catch {
      this.toasts.say('The browser does not allow copying; the address bar has the link.');
    }
  }

  // --- URL

  private rememberView(): void {
    if (!this.stage) return;
    this.viewedAt = performance.now();
    if (this.urlTimer !== 0) return;
    this.urlSince = this.viewedAt;
    this.urlTimer = window.setTimeout(() => this.writeUrlAtRest(), kUrlPauseMs);
  }

  private writeUrlAtRest(): void {
    const now = performance.now(), wait = Math.min(this.viewedAt + kUrlPauseMs, this.urlSince + kUrlMovingMs) - now;
    if (wait <= 0) return this.writeUrl();
    this.urlTimer = window.setTimeout(() => this.writeUrlAtRest(), wait);
  }

  private writeUrl(): void {
    clearTimeout(this.urlTimer);
    this.urlTimer = 0;
    if (this.closed) return;
    const query = formatViewState(this.state.toView(this.stage.topUnit));
    // Browsers cut or refuse very long addresses: with thousands of single ranks chosen, the window alone is kept.
    history.replaceState(
        null, '',
        `${location.pathname}?${
            query.length < 30000
                ? query
                : formatViewState({...parseViewState(query), open: [], hidden: [], closedInstances: [], picks: []})}`);
  }

  // The capture's warnings. Those of a complete capture change nothing that is seen, so that they are folded.
  private showNotes(isComplete: boolean): void {
    const {warnings} = this.state.layout, count = warnings.length;
    this.notes.hidden = count === 0;
    this.notes.classList.toggle('quiet', isComplete);
    const title = count === 1 ? 'One note about this capture' : `${count} notes about this capture`,
          summary = isComplete ? title
        : count === 1          ? warnings[0]
                               : `${title}: ${warnings[0]}`;
    replaceChildren(
        this.notes,
        element(
            'details', {}, element('summary', {}, summary),
            element('ul', {}, ...warnings.slice(isComplete ? 0 : 1).map(text => element('li', {}, text)))));
  }
}

// What is shown until the capture's layout arrived.
export function timelineLoading(id: string): HTMLElement {
  return element('div', {class: 'timeline-page'}, notice('loading', `Opening capture ${id}`));
}
