"""What reaches the transcript while the prompt has the focus: copying, walking and scrolling."""

from tui.widgets.transcript import Transcript


class Reach:
    """Actions of the chat screen that its transcript carries out."""

    transcript: Transcript

    def tell(self, text: str, severity: str = "information") -> None:
        """Say something under the prompt; what follows an action replaces it."""
        raise NotImplementedError

    def action_copy_reply(self) -> None:
        """Copy the marked message, or the last reply."""
        self.tell("There is no reply to copy yet.")
        self.transcript.action_copy_turn()

    def action_copy_code(self) -> None:
        """Copy the last code block; again, the one before it."""
        self.tell("There is no code to copy here.")
        self.transcript.action_copy_code()

    def action_branch_previous(self) -> None:
        """Go to the branch before this one."""
        self.transcript.action_branch(-1)

    def action_branch_next(self) -> None:
        """Go to the branch after this one."""
        self.transcript.action_branch(1)

    def action_turn_previous(self) -> None:
        """Mark the message before."""
        self.transcript.action_turn(-1)

    def action_turn_next(self) -> None:
        """Mark the message after."""
        self.transcript.action_turn(1)

    def action_scroll_up(self) -> None:
        """Scroll a page up."""
        self.transcript.scroll_page(-1)

    def action_scroll_down(self) -> None:
        """Scroll a page down."""
        self.transcript.scroll_page(1)

    def action_scroll_home(self) -> None:
        """Scroll to the start."""
        self.transcript.scroll_start()

    def action_scroll_end(self) -> None:
        """Scroll to the end and follow."""
        self.transcript.action_follow()
