// SPDX-License-Identifier: Apache-2.0
import {Scene, SceneWriter} from '../model/scene';

import {AnyCanvas, ScenePainter, SceneTheme} from './scene_painter';

// Page to worker, in the order of sending. The worker answers each frame with its array, for the next one.
type ToWorker = {
  kind: 'canvas',
  canvas: AnyCanvas
}|{kind: 'theme', theme: SceneTheme}|{kind: 'names', names: string[]}|
    {kind: 'frame', data: Int32Array, texts: string[]};
type FromWorker = {
  kind: 'ready'
}|{kind: 'drawn', data: Int32Array};

interface WorkerScope {
  onmessage: ((event: MessageEvent<ToWorker>) => void)|null;
  postMessage(message: FromWorker, transfer?: Transferable[]): void;
}

// Runs in the worker, which loads the same script as the page.
export function startSceneWorker(): void {
  const scope = globalThis as unknown as WorkerScope;
  let painter: ScenePainter|null = null;
  scope.onmessage = ({data: message}) => {
    if (message.kind === 'canvas') {
      painter = new ScenePainter(message.canvas);
    } else if (message.kind === 'theme') {
      painter?.setTheme(message.theme);
    } else if (message.kind === 'names') {
      painter?.addNames(message.names);
    } else {
      painter?.paint(new Scene(message.data, message.texts));
      scope.postMessage({kind: 'drawn', data: message.data}, [message.data.buffer]);
    }
  };
  scope.postMessage({kind: 'ready'});
}

// The canvas of the spans, drawn by a worker where the browser can, else on the page's thread. The page's thread draws
// until the worker is ready, and again if it fails, so that there is always a picture. One frame is with the worker at
// a time; of those that come meanwhile, only the newest is drawn.
export class SceneCanvas {
  canvas: HTMLCanvasElement;
  private local: ScenePainter|null = null;
  private worker: Worker|null = null;
  private isReady = false;    // the worker has the canvas
  private isDrawing = false;  // the worker has a frame
  private pending = false;    // `writer` has a newer one
  private spare: Int32Array|null = null;
  private namesSent = 0;
  private theme: SceneTheme|null = null;
  private previous: HTMLCanvasElement|null = null;  // over the worker's canvas until that has a picture
  readonly writer = new SceneWriter();

  // `script`: the address of the page's script; '' to draw on the page's thread. `redraw` is called when the canvas is
  // another one and has nothing yet.
  constructor(script: string, private readonly names: readonly string[], private readonly redraw: () => void) {
    this.canvas = makeSpanCanvas();
    this.drawLocally();
    if (script && typeof Worker === 'function' && 'transferControlToOffscreen' in HTMLCanvasElement.prototype)
      this.startWorker(script);
  }

  get isInWorker(): boolean {
    return this.isReady;
  }

  close(): void {
    this.worker?.terminate();
    this.worker = null;
    this.isReady = this.isDrawing = this.pending = false;
  }

  setTheme(theme: SceneTheme): void {
    this.theme = theme;
    this.local?.setTheme(theme);
    if (this.isReady) this.send({kind: 'theme', theme});
  }

  // Draws what `writer` has, or hands it over.
  show(): void {
    this.sendNames();
    if (this.local) return this.local.paint(new Scene(this.writer.data, this.writer.texts));
    if (!this.worker) return;  // closed
    this.pending = true;
    if (!this.isDrawing) this.sendFrame();
  }

  private startWorker(script: string): void {
    try {
      this.worker = new Worker(script);
    } catch {
      return;  // a policy of the browser: the page's thread draws
    }
    this.worker.onmessage = (event: MessageEvent<FromWorker>) => {
      if (event.data.kind === 'ready') return this.handOver();
      this.isDrawing = false;
      this.spare = event.data.data;
      this.previous?.remove();
      this.previous = null;
      if (this.pending) this.sendFrame();
    };
    this.worker.onerror = event => {
      event.preventDefault();
      console.warn(`neurontrace: the worker that draws failed, and the page draws instead: ${event.message}`);
      this.fallBack();
    };
  }

  private handOver(): void {
    const canvas = makeSpanCanvas();
    const offscreen = (canvas as unknown as {transferControlToOffscreen(): Transferable}).transferControlToOffscreen();
    this.worker!.postMessage({kind: 'canvas', canvas: offscreen}, [offscreen]);
    this.isReady = true;
    this.local = null;
    this.namesSent = 0;
    if (this.theme) this.send({kind: 'theme', theme: this.theme});
    this.previous = this.canvas;
    this.exchange(canvas, 'worker');
  }

  private fallBack(): void {
    const hadCanvas = this.isReady;
    this.close();
    if (!hadCanvas) return;
    const failed = this.canvas;
    this.exchange(makeSpanCanvas(), 'page');
    failed.remove();
    this.previous?.remove();
    this.previous = null;
    this.drawLocally();
  }

  private drawLocally(): void {
    this.canvas.dataset.painter = 'page';
    this.local = new ScenePainter(this.canvas);
    this.namesSent = 0;
    if (this.theme) this.local.setTheme(this.theme);
  }

  private exchange(canvas: HTMLCanvasElement, painter: string): void {
    canvas.dataset.painter = painter;
    canvas.style.cssText = this.canvas.style.cssText;
    this.canvas.before(canvas);
    this.canvas = canvas;
    this.redraw();
  }

  private sendNames(): void {
    if (this.namesSent === this.names.length) return;
    const names = this.names.slice(this.namesSent);
    this.namesSent = this.names.length;
    if (this.local)
      this.local.addNames(names);
    else if (this.worker)
      this.send({kind: 'names', names});
  }

  private sendFrame(): void {
    const {writer} = this, {data, texts} = writer;
    this.pending = false;
    this.isDrawing = true;
    writer.data = this.spare ?? new Int32Array(data.length);
    this.spare = null;
    this.worker!.postMessage({kind: 'frame', data, texts}, [data.buffer]);
  }

  private send(message: ToWorker): void {
    this.worker!.postMessage(message);
  }
}

function makeSpanCanvas(): HTMLCanvasElement {
  const canvas = document.createElement('canvas');
  canvas.className = 'spans';
  return canvas;
}
