// SPDX-License-Identifier: Apache-2.0
import {sentences} from '../model/safe_text';
import {SpanTile} from '../model/span_tile';
import {formatCount} from '../model/text_format';
import {element, notice, replaceChildren} from '../widgets/dom';

import {BlockLoader, kBlockStreams} from './block_loader';
import {Minimap} from './minimap';
import {Overlay} from './overlay';
import {kUnit, Painter} from './painter';
import {Ruler} from './ruler';
import {TimelineHost} from './timeline_host';
import {TreePanel} from './tree_panel';
import {VisibleTracks} from './visible_tracks';

const kMovingMs = 160;
const kTreeWidthMin = 140, kTreeWidthMax = 700;

// Tree, canvases, ruler and minimap, and the loop that draws them: at most once a frame, and only what changed.
export class Stage {
  readonly element: HTMLElement;
  readonly visible = new VisibleTracks();
  readonly painter: Painter;
  readonly overlay: Overlay;
  readonly minimap: Minimap;
  readonly ruler: Ruler;
  readonly tree: TreePanel;
  readonly loader: BlockLoader;
  readonly canvasBox = element('div', {
    class: 'canvas-box',
    tabindex: '0',
    role: 'application',
    'aria-label': 'Timeline. W and S zoom, A and D pan; press ? for all keys. The panel Table lists the events in view.'
  });
  readonly corner = element('div', {class: 'corner'});
  topUnit = 0;
  cutText = '';
  width = 1;  // CSS px of the canvas
  height = 1;
  private readonly scroller = element('div', {class: 'scroller', tabindex: '-1', 'aria-hidden': 'true'});
  private readonly spacer = element('div');
  private readonly lanes = element('div', {class: 'lanes'});
  private readonly status = element('div', {class: 'load-status', role: 'status', hidden: true});
  private readonly empty = element('div', {class: 'stage-empty', hidden: true});
  private readonly wantedBlocks: number[] = [];
  private readonly tiles = new Map<number, SpanTile|null>();  // of this frame, by block
  private frame = 0;
  private spansDirty = true;
  private movedAt = 0;
  private restTimer = 0;

  constructor(
      private readonly host: TimelineHost, onTile: {tileArrived(tile: SpanTile): void, loadingChanged(): void}) {
    const over = element('canvas', {class: 'over'});
    this.painter = new Painter(host.state, () => this.invalidate(true));
    this.painter.themeChanged();
    this.overlay = new Overlay(over, host.state, this.painter, this.visible);
    this.minimap = new Minimap(host);
    this.ruler = new Ruler(host.state);
    this.tree = new TreePanel(host, this);
    this.loader = new BlockLoader(host, onTile);
    this.canvasBox.append(this.painter.canvas, over, this.empty, this.status);
    this.scroller.appendChild(this.spacer);
    this.lanes.append(this.tree.element, this.makeSplitter(), this.canvasBox, this.scroller);
    this.element = element(
        'div', {class: 'stage'},
        element(
            'div', {class: 'stage-head'}, this.corner,
            element('div', {class: 'rulers'}, this.minimap.canvas, this.ruler.canvas)),
        this.lanes);
    this.scroller.addEventListener('scroll', () => this.onScroll());
    new ResizeObserver(() => this.resize()).observe(this.canvasBox);
    document.addEventListener('themechange', this.onTheme);
  }

  close(): void {
    this.loader.close();
    this.painter.close();
    cancelAnimationFrame(this.frame);
    clearTimeout(this.restTimer);
    document.removeEventListener('themechange', this.onTheme);
  }

  // The answer to draw a stream with.
  tileOf(stream: number): SpanTile|null {
    const index = this.host.state.layout.index(stream);
    return index < 0 ? null : this.tileOfBlock(Math.floor(index / kBlockStreams));
  }

  // Chosen once a frame for all streams of a block.
  private tileOfBlock(block: number): SpanTile|null {
    let tile = this.tiles.get(block);
    if (tile === undefined) {
      const {viewport, store} = this.host.state;
      tile = store.best(block, viewport.from, viewport.to, viewport.span / this.painter.width)?.tile ?? null;
      this.tiles.set(block, tile);
    }
    return tile;
  }

  // Draws in the next frame. `spans`: not only what lies over them.
  invalidate(spans: boolean, isMove = false): void {
    this.spansDirty = this.spansDirty || spans;
    if (isMove) this.movedAt = performance.now();
    if (this.frame === 0) this.frame = requestAnimationFrame(() => this.draw());
  }

  tracksChanged(): void {
    this.showEmpty();
    this.spacer.style.height = `${this.host.state.tree.units * kUnit}px`;
    this.scrollTo(this.topUnit);
  }

  scrollByUnits(units: number): void {
    this.scrollTo(this.topUnit + units);
  }

  showUnits(top: number, units: number): void {
    const room = this.scrolledUnits;
    if (top < this.topUnit)
      this.scrollTo(top);
    else if (top + units > this.topUnit + room)
      this.scrollTo(top + units - room);
  }

  scrollTo(unit: number): void {
    const most = Math.max(0, this.host.state.tree.units - this.scrolledUnits);
    this.topUnit = Math.max(0, Math.min(most, Math.round(unit)));
    this.scroller.scrollTop = this.topUnit * kUnit;
    this.invalidate(true, true);
  }

  // A note is folded: it must not cover what it is about. An empty text shows nothing.
  showLoading(text: string, kind: 'loading'|'error'|'note'): void {
    replaceChildren(
        this.status,
        kind === 'note'
            ? element('details', {}, element('summary', {}, 'Note on what is shown'), element('p', {}, text))
            : text);
    this.status.className = kind === 'error' ? 'load-status error' : 'load-status';
    this.status.hidden = !text;
  }

  // Says why there is no rank to be seen, and what to do.
  private showEmpty(): void {
    const {tree, layout} = this.host.state;
    this.empty.hidden = tree.list.length + tree.pinnedTracks.length > 0;
    if (this.empty.hidden) return;
    let title = 'All ranks are hidden', hint = 'Choose “hidden” at the left.';
    if (!layout.streams.length && layout.live) {
      title = 'No event has arrived yet';
      hint = 'The page shows events as soon as they are stored.';
    } else if (!layout.streams.length) {
      title = 'The capture has no events';
      hint = 'Its certificate says which workers took part, and why others did not.';
    } else if (!tree.filter.isEmpty) {
      title = 'No rank matches the filter';
      hint = 'Clear the filter box at the left to see all ranks.';
    }
    replaceChildren(this.empty, notice('empty', title, hint));
  }

  // Units of the screen below the pinned tracks that are whole.
  private get scrolledUnits(): number {
    return Math.max(
        1,
        Math.floor(this.height / kUnit) -
            Math.min(this.host.state.tree.pinnedUnits, Math.floor(this.height / kUnit / 2)));
  }

  private readonly onTheme = (): void => {
    this.painter.themeChanged();
    this.overlay.themeChanged();
    this.ruler.themeChanged();
    this.minimap.themeChanged();
    this.invalidate(true);
  };

  private onScroll(): void {
    const unit = Math.round(this.scroller.scrollTop / kUnit);
    if (unit === this.topUnit) return;
    this.topUnit = unit;
    this.invalidate(true, true);
  }

  private resize(): void {
    this.width = Math.max(1, this.canvasBox.clientWidth);
    this.height = Math.max(1, this.canvasBox.clientHeight);
    this.painter.resize(this.width, this.height);
    this.overlay.resize(this.width, this.height);
    this.ruler.resize(this.width);
    this.minimap.resize(this.width);
    this.scrollTo(this.topUnit);
    this.draw();
  }

  private draw(): void {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    if (this.painter.width === 0) return;  // not in the document yet; its first size draws
    const {state} = this.host;
    if (this.spansDirty) {
      this.spansDirty = false;
      this.tiles.clear();
      this.visible.update(state.tree, this.topUnit, Math.ceil(this.height / kUnit));
      const moving = performance.now() - this.movedAt < kMovingMs;
      this.painter.paint(this.visible, this, moving);
      this.tree.update(this.visible, this);
      this.askForBlocks();
      if (moving) this.drawAgainAtRest();
      this.ruler.paint();
      this.minimap.paint();
    }
    this.overlay.paint();
  }

  // What the answers on the screen left out, and chunks that could not be read: never silently.
  private noteCut(): void {
    let text = '', unreadable = 0;
    for (const block of this.wantedBlocks) {
      const tile = this.tileOfBlock(block);
      text = text || (tile?.cut ?? '');
      unreadable += tile?.unreadableChunks ?? 0;
    }
    if (unreadable > 0) text = sentences(text, `${formatCount(unreadable)} chunks cannot be read`);
    if (text === this.cutText) return;
    this.cutText = text;
    this.host.cutChanged();
  }

  // While the view moves, short labels are left out; they come when it rests.
  private drawAgainAtRest(): void {
    clearTimeout(this.restTimer);
    this.restTimer = window.setTimeout(() => this.invalidate(true), kMovingMs + 20);
  }

  private askForBlocks(): void {
    const {layout, viewport} = this.host.state, {visible, wantedBlocks} = this;
    wantedBlocks.length = 0;
    for (let i = 0; i < visible.count; ++i) {
      const stream = visible.tracks[i].stream;
      if (stream < 0) continue;
      const block = Math.floor(layout.index(stream) / kBlockStreams);
      if (block >= 0 && !wantedBlocks.includes(block)) wantedBlocks.push(block);
    }
    this.noteCut();
    this.loader.want(wantedBlocks, viewport.from, viewport.to, this.painter.width);
  }

  private makeSplitter(): HTMLElement {
    const splitter = element('div', {
      class: 'splitter',
      role: 'separator',
      tabindex: '0',
      'aria-orientation': 'vertical',
      'aria-label': 'Width of the tree',
      'aria-valuenow': '250',
      'aria-valuemin': kTreeWidthMin,
      'aria-valuemax': kTreeWidthMax
    });
    const set = (width: number): void => {
      const limited = Math.max(kTreeWidthMin, Math.min(kTreeWidthMax, width));
      this.element.style.setProperty('--tree-width', `${limited}px`);
      splitter.setAttribute('aria-valuenow', String(Math.round(limited)));
    };
    splitter.addEventListener('pointerdown', event => splitter.setPointerCapture(event.pointerId));
    splitter.addEventListener('pointermove', event => {
      if (splitter.hasPointerCapture(event.pointerId)) set(event.clientX - this.element.getBoundingClientRect().left);
    });
    splitter.addEventListener('keydown', event => {
      const step = event.key === 'ArrowLeft' ? -20 : event.key === 'ArrowRight' ? 20 : 0;
      if (step === 0) return;
      set(this.tree.element.offsetWidth + step);
      event.preventDefault();
      event.stopPropagation();
    });
    return splitter;
  }
}
