import { useLocation } from "@tanstack/react-router";
import { createContext, type ReactNode, useContext, useState } from "react";

const ScrollArea = createContext<HTMLElement | null>(null);

/** The element that scrolls the page, for lists that render only their visible rows. */
export const useScrollArea = (): HTMLElement | null => useContext(ScrollArea);

/** The page's main part. Keeps its scroll position for back navigation. */
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
