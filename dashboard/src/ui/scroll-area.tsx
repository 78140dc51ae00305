import { useLocation } from "@tanstack/react-router";
import { createContext, type ReactNode, useContext, useState } from "react";

const ScrollArea = createContext<HTMLElement | null>(null);

/** The element that scrolls the page, for lists that show only what is in view. */
export const useScrollArea = (): HTMLElement | null => useContext(ScrollArea);

/** The page's main part. Its scroll position is kept for the way back. */
export function ScrollMain({
  className,
  children,
}: {
  className: string | undefined;
  children: ReactNode;
}) {
  const [element, setElement] = useState<HTMLElement | null>(null);
  const path = useLocation({ select: ({ pathname }) => pathname });
  return (
    <main
      id="main"
      ref={setElement}
      className={className}
      tabIndex={-1}
      data-scroll-restoration-id="main"
      data-path={path}
    >
      <ScrollArea value={element}>{children}</ScrollArea>
    </main>
  );
}
