"""The built-in prompts, by what people use a model for: questions, edits of code, summaries, facts out of a text.

They differ in what matters to speed. A chat answer is new text; an edit repeats most of its prompt; a summary is short
after a long prompt; extraction copies names and figures.
"""

_CHAT = (
    "Why does bread go stale faster in the refrigerator than on the kitchen table?",
    "Explain to a twelve-year-old how a lock on a canal lifts a boat uphill.",
    "I have three hours in an unknown town and like old buildings. How should I plan them?",
    "What is the difference between a virus and a bacterium, and why does it matter for treatment?",
    "Give me five ideas for a quiet evening without a screen, each with one sentence about why.",
    "How do I tell a colleague that I cannot take over another task without sounding unkind?",
)

_MODULE = """\
class Account:
    def __init__(self, owner, balance=0):
        self.owner = owner
        self.balance = balance
        self.entries = []

    def deposit(self, amount):
        if amount <= 0:
            raise ValueError("amount must be positive")
        self.balance += amount
        self.entries.append(("deposit", amount))

    def withdraw(self, amount):
        if amount <= 0:
            raise ValueError("amount must be positive")
        if amount > self.balance:
            raise ValueError("not enough money")
        self.balance -= amount
        self.entries.append(("withdraw", amount))

    def history(self):
        return list(self.entries)
"""

_GRID = """\
def neighbours(grid, row, column):
    height = len(grid)
    width = len(grid[0])
    found = []
    for d_row in (-1, 0, 1):
        for d_column in (-1, 0, 1):
            if d_row == 0 and d_column == 0:
                continue
            r = row + d_row
            c = column + d_column
            if 0 <= r < height and 0 <= c < width:
                found.append(grid[r][c])
    return found


def step(grid):
    fresh = []
    for row in range(len(grid)):
        line = []
        for column in range(len(grid[0])):
            alive = sum(neighbours(grid, row, column))
            line.append(1 if alive == 3 or (alive == 2 and grid[row][column]) else 0)
        fresh.append(line)
    return fresh
"""

_QUERY = """\
function listOrders(orders, filter) {
  const result = [];
  for (let i = 0; i < orders.length; i++) {
    const order = orders[i];
    if (filter.customer && order.customer !== filter.customer) {
      continue;
    }
    if (filter.from && order.date < filter.from) {
      continue;
    }
    if (filter.until && order.date > filter.until) {
      continue;
    }
    result.push({ id: order.id, date: order.date, total: order.total });
  }
  return result;
}
"""

_CODE = (
    f"Add type hints to every function of this module and repeat the whole module:\n\n```python\n{_MODULE}```",
    f"Rename the variables r and c to near_row and near_column and repeat all of the code:\n\n```python\n{_GRID}```",
    f"Add a filter for the smallest total and repeat the whole function:\n\n```javascript\n{_QUERY}```",
    f"Rename the class Account to Wallet, change nothing else, and repeat it:\n\n```python\n{_MODULE}```",
)

_HARBOUR = """\
The harbour of the island was built in 1874, when the herring came in such numbers that boats waited a day to land \
them. Its first wall was made of granite blocks that were cut on the mainland and brought over in winter, when the \
quarry had little else to do. Two storms in the following decade carried away the outer forty metres, and the \
engineer who repaired it gave the wall a slope on its seaward side, so that waves would run up and lose their force \
instead of breaking against it. The slope is still there, though it was covered with concrete in 1931. When the \
herring stayed away after the war, most of the boats were sold, and the salting houses became stores for seaweed and \
later for nothing at all. The ferry, which had called twice a week, began to come daily in 1968, and with it came \
visitors who wanted to see birds. Today the harbour has twenty berths for yachts, a small museum in the largest \
salting house, and a ramp for the lifeboat, which has been called out eleven times in the last three years. The \
council plans to raise the wall by eighty centimetres, because high water now stands on the quay several times each \
winter."""

_LIBRARY = """\
The town library counted its visitors for a year before it changed its hours, and the figures were not what anybody \
had expected. On Saturdays, which the staff had thought of as the busiest day, fewer people came than on Tuesdays, \
but they stayed three times as long. The hour after school was the loudest and the hour before closing the fullest. \
Half of those who came did not borrow anything: they read newspapers, used the computers, met somebody, or sat where \
it was warm. From May to September the garden door was open and one visitor in six went straight through to the \
benches. The library now opens later in the morning and closes at nine on three evenings. The reading room has been \
divided by shelves into a quiet half and one where talking is allowed, and the computers have moved to the middle. In \
the first six months after the change the number of visits rose by a fifth while loans stayed the same. Complaints \
about noise fell from about ten a month to two. The one thing that people miss is the early opening on Mondays, which \
those on night shifts had used on their way home."""

_TRIAL = """\
Forty households on two streets took part in the trial. For eight weeks their heat pumps were allowed to warm the \
houses by one degree more than was asked for in the early afternoon, when the sun made power plentiful, and to rest \
in the evening, when it was dear. Nobody had to do anything, and everybody could end it by pressing a button on the \
wall. The button was pressed thirty-one times in all, twenty-two of them in the first week. Evening use fell by \
thirty-eight per cent on bright days and by nine per cent on dull ones. The total rose a little, by about three per \
cent, because a warmer house loses more heat. Bills were lower all the same, by eleven per cent on average, though in \
the four oldest houses they were higher, and their owners have been offered insulation. Asked afterwards, \
thirty-three households said they would go on, five were undecided, and two would not, both because the bedrooms were \
too warm in the afternoon. The company will repeat the trial in a cold winter before it offers the tariff to all."""

_SUMMARY = (
    *(f"Summarise this text in two sentences.\n\n{text}" for text in (_HARBOUR, _LIBRARY, _TRIAL)),
    f"Which figures does this text give? One line for each.\n\n{_TRIAL}",
)

_INVOICE = """\
Invoice 2207-118, dated 14 March. Supplier: Northgate Timber, 8 Mill Lane. Customer: Hollis Joinery, 21 Quay Street. \
Items: 12 oak boards, 2.40 m, at 38.50 each; 40 larch battens, 3.00 m, at 6.20 each; 2 tins of linseed oil, 5 l, at \
44.00 each. Delivery 35.00. Payable within 30 days to account 4471 0092 8813. Questions to the office, extension 14."""

_MINUTES = """\
Minutes of the garden committee, 6 June, 18:30, in the hall. Present: the chair, the treasurer, four members; two \
sent apologies. The tap by plot 17 leaks and will be repaired before 20 June at a cost of at most 120. The waiting \
list has 23 names, seven more than in spring. The autumn market is on 12 October, stalls to be booked by 1 September \
at 15 each. Plots 4, 9 and 31 have not been worked since April: letters go out this week. Next meeting: 4 July, same \
place."""

_LISTING = """\
For rent from 1 August: two rooms, kitchen, bath, 58 square metres, third floor without a lift, built in 1926, \
heating by gas. 690 a month and 145 for heating and water; deposit of two months. Cellar 4 square metres, bicycles in \
the yard. Tram 5 stops 200 metres away, the station is 12 minutes on foot. Viewings on Wednesday from 17:00 to 18:30."""

_EXTRACTION = (
    f"List every item with quantity, length or size, and price as JSON.\n\n{_INVOICE}",
    f"List every date with what happens on it, one line each.\n\n{_MINUTES}",
    f"Give address facts as JSON: rooms, area, floor, rent, extra costs, deposit, free from.\n\n{_LISTING}",
    f"Copy every number in this text together with the words around it.\n\n{_INVOICE}",
)

BUILT_IN: dict[str, tuple[str, ...]] = {
    "chat": _CHAT,
    "code": _CODE,
    "summary": _SUMMARY,
    "extraction": _EXTRACTION,
}
