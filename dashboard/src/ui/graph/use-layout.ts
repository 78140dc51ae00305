import { useEffect, useRef, useState } from "react";
import { startWorker } from "../../app/trusted";
import workerUrl from "./layout.worker?worker&url";
import type { Layout, LayoutAnswer, LayoutRequest } from "./layout-messages";

type Graph = Omit<LayoutRequest, "id">;

/**
 * Node positions, computed in a web worker. After a change of the graph, returns the previous
 * layout until the web worker has computed the next one.
 */
export function useLayout(graph: Graph): Layout | undefined {
  const [layout, setLayout] = useState<Layout>();
  const worker = useRef<Worker>(undefined);
  const lastId = useRef(0);
  useEffect(() => {
    const started = startWorker(workerUrl);
    worker.current = started;
    started.onmessage = ({ data }: MessageEvent<LayoutAnswer>) => {
      if (data.id === lastId.current) setLayout(data.layout);
    };
    return () => started.terminate();
  }, []);
  // Compares graphs as text, because each poll returns an equal graph as a new object.
  const text = JSON.stringify(graph);
  useEffect(() => {
    lastId.current += 1;
    worker.current?.postMessage({ id: lastId.current, ...(JSON.parse(text) as Graph) });
  }, [text]);
  return layout;
}
